// SPDX-License-Identifier: MIT
// Bytes as text: base64 (RFC 4648, padded), hex, SHA-256; random bytes; and SSH's binary numbers.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Numbers and strings as SSH, its agent and its control sockets send them (RFC 4251, section 5).

/// Four bytes, the highest first.
std::string ssh_number(std::uint32_t number);
/// The length and the bytes.
std::string ssh_string(std::string_view bytes);
/// Removes a number from the front of `bytes`. Nothing if it is not all there.
std::optional<std::uint32_t> take_number(std::string_view& bytes);
/// The same for a string; nothing is removed if it is not all there.
std::optional<std::string_view> take_string(std::string_view& bytes);

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
