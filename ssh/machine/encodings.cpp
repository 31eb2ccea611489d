// SPDX-License-Identifier: MIT
#include "ssh/machine/encodings.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <system_error>

namespace dtool::ssh {

namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : kBase64Digits[group >> (18U - 6U * k) & 63U];
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool is_last = i + 4 == text.size();
    std::uint32_t group = 0;
    std::size_t padding = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const char each = text[i + k];
      if (each == '=' && is_last && k >= 2) {
        ++padding;
        group <<= 6U;
        continue;
      }
      const std::size_t digit = kBase64Digits.find(each);
      if (digit == kBase64Digits.npos || padding > 0) return std::nullopt;
      group = group << 6U | static_cast<std::uint32_t>(digit);
    }
    if ((group & ((1U << 8U * padding) - 1)) != 0) return std::nullopt;  // bits of no byte
    for (std::size_t k = 0; k + padding < 3; ++k)
      bytes += static_cast<char>(group >> (16U - 8U * k) & 255U);
  }
  return bytes;
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
