// SPDX-License-Identifier: MIT
// A file that grows by whole pieces, for metrics.jsonl and TensorBoard's events. A reader never
// finds a partial line, neither during writing nor after the writer was killed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dtool::trainer {

/// What happens to an incomplete last line; all other content stays.
enum class HalfLine { keep, cut };

class AppendFile {
 public:
  /// Makes the file if it is missing. `HalfLine::cut` removes everything after the last line break,
  /// which a power failure or a full disk may have left. Throws std::system_error.
  AppendFile(const std::filesystem::path& file, HalfLine half_line);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Writes all of `piece` with one write, or nothing: a partial write is undone. Throws
  /// std::system_error.
  void append(std::string_view piece);

 private:
  void cut_half_line();

  std::string name_;
  int descriptor_ = -1;
};

}  // namespace dtool::trainer
