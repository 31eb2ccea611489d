// Reads a file that may be gzip's: what it unpacks to, or its bytes as they are.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

struct gzFile_s;

namespace dtool::trainer {

/// An open file, read from its beginning.
class PackedFile {
 public:
  /// Throws UsageError when it cannot be opened.
  explicit PackedFile(std::filesystem::path file);
  ~PackedFile();
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;

  /// Fills `into`, with fewer than `size` bytes at the end only, and returns how many. Throws
  /// UsageError when gzip's data is damaged or cut short.
  std::size_t read(void* into, std::size_t size);

 private:
  std::filesystem::path file_;
  gzFile_s* stream_;
};

/// All that a file holds.
std::string read_packed(const std::filesystem::path& file);

}  // namespace dtool::trainer
