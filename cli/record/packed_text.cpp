// SPDX-License-Identifier: MIT
#include "cli/record/packed_text.h"

#include <fmt/format.h>
#include <zstd.h>

#include <cstdint>
#include <stdexcept>

namespace dtool::cli {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int kLevel = 9;  // a diff of 1 MiB takes 30 ms

}  // namespace

std::string pack(std::string_view text) {
  std::string bytes(::ZSTD_compressBound(text.size()), '\0');
  const std::size_t size =
      ::ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), kLevel);
  if (::ZSTD_isError(size) != 0)
    throw std::runtime_error(fmt::format("zstd: {}", ::ZSTD_getErrorName(size)));
  bytes.resize(size);
  return bytes;
}

std::optional<std::string> unpack(std::string_view bytes, std::size_t most) {
  const auto size = ::ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > most)
    return std::nullopt;
  std::string text(size, '\0');
  const std::size_t read = ::ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  if (::ZSTD_isError(read) != 0 || read != text.size()) return std::nullopt;
  return text;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : kDigits[group >> (18U - 6U * k) & 63U];
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
      const std::size_t digit = kDigits.find(each);
      if (digit == kDigits.npos || padding > 0) return std::nullopt;
      group = group << 6U | static_cast<std::uint32_t>(digit);
    }
    for (std::size_t k = 0; k + padding < 3; ++k)
      bytes += static_cast<char>(group >> (16U - 8U * k) & 255U);
  }
  return bytes;
}

}  // namespace dtool::cli
