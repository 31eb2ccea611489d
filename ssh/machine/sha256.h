// SPDX-License-Identifier: MIT
// SHA-256 of bytes that come piece by piece.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace dtool::ssh {

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
