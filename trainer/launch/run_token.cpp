// SPDX-License-Identifier: MIT
// Uses libcrypto's HMAC. dtool writes the file into the state folder of each machine
// (cli/launchers).
#include "trainer/launch/run_token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

constexpr std::size_t kShortest = 32;
constexpr std::size_t kLongest = 256;

std::string to_hex(const unsigned char* bytes, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

UsageError wrong(const std::string& path, const std::string& why, const std::string& hint = "") {
  return UsageError(fmt::format("{}={}: {}", kTokenFileVariable, path, why), hint);
}

/// Reads a file that belongs to this user alone, or to the system.
std::string read_private_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) throw wrong(path, std::strerror(errno));
  struct stat found {};
  char text[kLongest + 2];
  const bool known = fstat(file, &found) == 0;
  const auto size = known && S_ISREG(found.st_mode) ? read(file, text, sizeof text) : -1;
  close(file);
  if (size < 0) throw wrong(path, "this is no file that can be read");
  if (found.st_uid != geteuid() && found.st_uid != 0) {
    throw wrong(path, fmt::format("it belongs to user {}", found.st_uid));
  }
  if ((found.st_mode & 077) != 0) {
    throw wrong(path, "others may read or write it", "chmod 600 " + path);
  }
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

std::string RunToken::prove(std::initializer_list<std::string_view> words) const {
  std::string message;
  for (const auto word : words) message += fmt::format("{}:{}", word.size(), word);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest,
           &size) == nullptr) {
    throw std::runtime_error("libcrypto cannot compute HMAC-SHA256");
  }
  return to_hex(digest, size);
}

RunToken read_run_token(const Environment& environment) {
  const auto path = environment(kTokenFileVariable);
  if (!path || path->empty()) return {};
  std::string secret = read_private_file(*path);
  if (!secret.empty() && secret.back() == '\n') secret.pop_back();
  const auto is_digit = [](char each) {
    return (each >= '0' && each <= '9') || (each >= 'a' && each <= 'f');
  };
  if (secret.size() < kShortest || secret.size() > kLongest ||
      !std::all_of(secret.begin(), secret.end(), is_digit)) {
    throw wrong(*path, fmt::format("it holds no token, which is {} to {} digits from 0-9a-f",
                                   kShortest, kLongest));
  }
  return RunToken(secret);
}

const RunToken& own_run_token() {
  static const RunToken token = read_run_token(process_environment);
  return token;
}

void make_own_run_token() {
  if (std::getenv(kTokenFileVariable) != nullptr) return;
  const int file = memfd_create("dtool-token", 0);
  const std::string secret = random_nonce() + random_nonce();
  if (file < 0 || fchmod(file, 0600) != 0 ||
      write(file, secret.data(), secret.size()) != static_cast<ssize_t>(secret.size())) {
    throw std::system_error(errno, std::generic_category(), "cannot keep a token");
  }
  setenv(kTokenFileVariable, fmt::format("/proc/self/fd/{}", file).c_str(), 1);
}

bool is_same_proof(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

std::string random_nonce() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
    throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  return to_hex(bytes, sizeof bytes);
}

}  // namespace dtool::trainer
