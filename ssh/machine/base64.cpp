// SPDX-License-Identifier: MIT
#include "ssh/machine/base64.h"

#include <cstddef>
#include <cstdint>

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

}  // namespace dtool::ssh
