// SPDX-License-Identifier: MIT
// Texts for --json that may be larger than memory: the logs of `dtool logs`, the output of `dtool
// command`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/machine/files.h"

namespace dtool::cli {

/// Texts that grow side by side. The last 64 KiB of each are in memory, the rest lies in an unnamed
/// file on disk. In a document a mark stands for each text; Console::document() puts the text
/// there.
class LargeTexts {
 public:
  explicit LargeTexts(std::size_t count = 0);

  /// Throws ssh::HostError if the disk has no room for it.
  void add(std::size_t text, std::string_view bytes);
  std::uint64_t size(std::size_t text) const { return texts_.at(text).size; }
  void clear(std::size_t text) { texts_.at(text) = Text(); }

  /// Nothing in a document but this text's mark contains it: it has a secret.
  std::string mark(std::size_t text) const;
  struct Mark {
    std::size_t at = 0, size = 0;  ///< the place where the mark stands, and its size
    std::size_t text = 0;
  };
  /// The first mark in `document`.
  std::optional<Mark> find_mark(std::string_view document) const;

  /// Hands on the text in pieces. Each begins where a character of UTF-8 can begin. Throws
  /// std::system_error if the file cannot be read.
  void read(std::size_t text, const std::function<void(std::string_view)>& take) const;

 private:
  struct Piece {
    std::uint64_t at;  ///< the place in the file
    std::size_t size;
  };
  struct Text {
    std::vector<Piece> on_disk = {};
    std::string rest = {};  ///< the text behind those pieces
    std::uint64_t size = 0;
  };
  void move_to_disk(Text& text);

  std::vector<Text> texts_;
  ssh::OwnedFd file_;
  std::uint64_t file_size_ = 0;
  std::string secret_;
};

}  // namespace dtool::cli
