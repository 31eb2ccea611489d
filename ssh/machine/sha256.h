// SHA-256 of bytes that come piece by piece.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace dtool::ssh {

class Sha256 {
 public:
  /// Throws std::runtime_error if this machine's OpenSSL has none.
  Sha256();
  ~Sha256();

  void add(std::string_view bytes);
  /// Of all that was added, in lower-case hex. Ends it: nothing may be added any more.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace dtool::ssh
