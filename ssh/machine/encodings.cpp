// SPDX-License-Identifier: MIT
#include "ssh/machine/encodings.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <system_error>

namespace dtool::ssh {

std::string to_base64(std::string_view bytes) {
  if (bytes.size() > std::numeric_limits<int>::max())
    throw std::length_error("too many bytes for base64");
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.empty()) return "";
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size != static_cast<int>(bytes.size())) return std::nullopt;
  // OpenSSL takes the padding for zero bytes, and blanks around the text for nothing.
  bytes.resize(bytes.size() - (text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0));
  return to_base64(bytes) == text ? std::optional(bytes) : std::nullopt;
}

std::string random_hex(std::size_t bytes) {
  std::string text;
  while (text.size() < 2 * bytes) {
    std::array<unsigned char, 32> some{};  // the kernel gives so few in one piece
    if (::getrandom(some.data(), some.size(), 0) < 0)
      throw std::system_error(errno, std::generic_category(), "getrandom");
    for (const unsigned char byte : some) text += fmt::format("{:02x}", byte);
  }
  text.resize(2 * bytes);
  return text;
}

std::string ssh_number(std::uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

std::string ssh_string(std::string_view bytes) {
  return ssh_number(static_cast<std::uint32_t>(bytes.size())).append(bytes);
}

std::optional<std::uint32_t> take_number(std::string_view& bytes) {
  constexpr std::size_t kSize = 4;
  if (bytes.size() < kSize) return std::nullopt;
  std::uint32_t number = 0;
  for (const char each : bytes.substr(0, kSize))
    number = number << 8 | static_cast<std::uint8_t>(each);
  bytes.remove_prefix(kSize);
  return number;
}

std::optional<std::string_view> take_string(std::string_view& bytes) {
  std::string_view rest = bytes;
  const auto size = take_number(rest);
  if (!size || *size > rest.size()) return std::nullopt;
  bytes = rest.substr(*size);
  return rest.substr(0, *size);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
  if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("this machine's OpenSSL has no SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> bytes{};
  EVP_DigestFinal_ex(context_.get(), bytes.data(), nullptr);
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace dtool::ssh
