// SPDX-License-Identifier: MIT
// Reads a file of any size without holding it in memory.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// Calls `take` with all bytes of a file, piece by piece. Throws std::runtime_error if it cannot
/// be read.
template <typename Take>
void read_pieces(const std::filesystem::path& file, Take take) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> piece(1 << 20);
  while (stream) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    take(std::string_view(piece.data(), static_cast<std::size_t>(stream.gcount())));
  }
  if (!stream.eof()) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
}

}  // namespace dtool::ssh
