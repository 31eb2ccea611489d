// SPDX-License-Identifier: MIT
// Reads a plain or gzip file; gzip is unpacked.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <string>

struct gzFile_s;

namespace dtool::trainer {

/// An open file, read from its beginning.
class PackedFile {
 public:
  /// Throws UsageError if it cannot be opened.
  explicit PackedFile(std::filesystem::path file);
  ~PackedFile();
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;

  /// Fills `into` and returns the number of bytes, which is less than `size` only at the end.
  /// Throws UsageError if the gzip data is damaged or cut short.
  std::size_t read(void* into, std::size_t size);

  /// Has `read` begin again, with the file that was opened: another file that was renamed over it
  /// meanwhile is not read. Throws UsageError if it cannot be read again, as a pipe.
  void rewind();
  /// Whether nobody has written to the file since it was opened.
  bool is_unchanged() const;

 private:
  std::filesystem::path file_;
  int descriptor_;
  gzFile_s* stream_;
  struct stat at_first_ {};
};

/// The whole content of a file.
std::string read_packed(const std::filesystem::path& file);

}  // namespace dtool::trainer
