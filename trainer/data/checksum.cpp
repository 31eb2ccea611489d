// SPDX-License-Identifier: MIT
// libcrypto's SHA-256, which uses the processor's SHA instructions if there are any.
#include "trainer/data/checksum.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "trainer/data/packed_file.h"

namespace dtool::trainer {
namespace {

using Buffer = std::vector<unsigned char>;
using Digest = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& why) {
  throw std::runtime_error(fmt::format("cannot read {}: {}", file.string(), why));
}

void require(int success) {
  if (success != 1) throw std::runtime_error("libcrypto cannot compute SHA-256");
}

/// Calls `take` with each piece of the file's bytes.
void each_of_bytes(const std::filesystem::path& file, Buffer& buffer,
                   const std::function<void(std::size_t)>& take) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(file.c_str(), "rbe"),
                                                               std::fclose);
  if (!stream) fail(file, std::strerror(errno));
  std::setvbuf(stream.get(), nullptr, _IONBF, 0);
  while (const auto size = std::fread(buffer.data(), 1, buffer.size(), stream.get())) take(size);
  if (std::ferror(stream.get()) != 0) fail(file, std::strerror(errno));
}

/// The same for what they unpack to.
void each_of_content(const std::filesystem::path& file, Buffer& buffer,
                     const std::function<void(std::size_t)>& take) {
  PackedFile stream(file);
  while (const auto size = stream.read(buffer.data(), buffer.size())) take(size);
}

}  // namespace

std::string sha256_of(const std::filesystem::path& file, Counted counted) {
  const Digest digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  require(EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr));
  Buffer buffer(1 << 20);
  const auto each = counted == Counted::bytes ? each_of_bytes : each_of_content;
  each(file, buffer,
       [&](std::size_t size) { require(EVP_DigestUpdate(digest.get(), buffer.data(), size)); });
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned count = 0;
  require(EVP_DigestFinal_ex(digest.get(), bytes, &count));
  std::string text;
  for (unsigned i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace dtool::trainer
