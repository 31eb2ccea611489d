// SPDX-License-Identifier: MIT
// Bytes as text: base64 (RFC 4648, padded), hex, SHA-256; and random bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace dtool::ssh {

/// Throws std::length_error for more than two gigabytes.
std::string to_base64(std::string_view bytes);
/// Nothing if the text is not base64.
std::optional<std::string> from_base64(std::string_view text);

/// That many random bytes in hex, good for keys. Throws std::system_error.
std::string random_hex(std::size_t bytes);

/// SHA-256 of bytes that come piece by piece.
class Sha256 {
 public:
  /// Throws std::runtime_error if this machine's OpenSSL has no SHA-256.
  Sha256();
  ~Sha256();

  void add(std::string_view bytes);
  /// The digest of all added bytes, in lower-case hex. Nothing may be added after it.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace dtool::ssh
