// SPDX-License-Identifier: MIT
// Files that are written whole: models, checkpoints, tables, pictures.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "killfiles/channel/wire.h"

namespace dtool::trainer {

/// What a file is called until it is complete: this stands behind its name.
inline constexpr const char* kTemporary = ".partial";

/// Takes the next bytes of a file.
using Sink = std::function<void(std::string_view)>;

/// Writes to `file` what `write` gives to its sink, so that at every instant the file is absent,
/// the former one, or complete: a temporary file beside it, fsync, rename, fsync of the folder.
/// What is there and no file, such as a pipe or a device, stays and is written into. Throws
/// std::system_error, and what `write` throws.
void write_whole(const std::filesystem::path& file, const std::function<void(const Sink&)>& write);

/// The same with all bytes at once.
void write_whole(const std::filesystem::path& file, const std::string& content);

/// Writes all of the bytes; false if the system refuses, with errno.
bool write_all(int descriptor, std::string_view bytes);

/// Flushes the file `from` to the disk, then renames it to `to`. Throws std::system_error.
void name_when_whole(const std::filesystem::path& from, const std::filesystem::path& to);

// A file that grows by whole pieces, for metrics.jsonl and TensorBoard's events. A reader never
// finds a partial line, neither during writing nor after the writer was killed.

/// What happens to an incomplete last line; all other content stays.
enum class HalfLine { keep, cut };

class AppendFile {
 public:
  /// Makes the file if it is missing. `HalfLine::cut` removes everything after the last line break,
  /// which a power failure or a full disk may have left. Throws std::system_error.
  AppendFile(const std::filesystem::path& file, HalfLine half_line);

  /// Writes all of `piece` with one write, or nothing: a partial write is undone. Throws
  /// std::system_error.
  void append(std::string_view piece);

 private:
  void cut_half_line();

  std::filesystem::path name_;
  host::Descriptor descriptor_;
};

}  // namespace dtool::trainer
