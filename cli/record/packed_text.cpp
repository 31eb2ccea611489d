// SPDX-License-Identifier: MIT
#include "cli/record/packed_text.h"

#include <fmt/format.h>
#include <zstd.h>

#include <stdexcept>

namespace dtool::cli {
namespace {

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

}  // namespace dtool::cli
