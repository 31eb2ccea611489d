// SPDX-License-Identifier: MIT
// Reads IDX files, plain or packed by gzip, the format of MNIST and its relatives:
// http://yann.lecun.com/exdb/mnist/.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory_resource>
#include <string>
#include <vector>

struct gzFile_s;

namespace dtool::trainer {

/// An array of bytes: `shape` is [count, rows, columns] for images and [count] for labels; `values`
/// is in row-major order.
struct IdxArray {
  std::vector<std::int64_t> shape;
  std::pmr::vector<std::uint8_t> values;
};

/// Reads a plain or gzip file; the values' memory comes from `memory`. Throws UsageError naming the
/// file if it is missing, has another format or other elements than unsigned bytes, or if its size
/// differs from its header.
IdxArray read_idx(const std::filesystem::path& file,
                  std::pmr::memory_resource* memory = std::pmr::get_default_resource());

/// Grey images with their labels.
struct LabelledImages {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t pixels = 0;                ///< rows times columns of one image
  std::pmr::vector<std::uint8_t> images;  ///< [count, pixels], 0 black to 255 white
  std::pmr::vector<std::uint8_t> labels;  ///< [count]
};

struct TrainAndTest {
  LabelledImages train;
  LabelledImages test;
  std::int64_t classes = 0;  ///< the highest training label + 1; no test label is higher
};

/// Reads training images, training labels, test images and test labels. The images' memory comes
/// from `memory`. Throws UsageError if they do not fit together.
TrainAndTest read_image_files(const std::vector<std::filesystem::path>& files,
                              std::pmr::memory_resource* memory);

// Reads a plain or gzip file; gzip is unpacked.

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

}  // namespace dtool::trainer
