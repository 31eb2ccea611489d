// SPDX-License-Identifier: MIT
// Reads IDX files, the format of MNIST and its relatives: http://yann.lecun.com/exdb/mnist/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace dtool::trainer {

/// An array of bytes: `shape` is [count, rows, columns] for images and [count] for labels; `values`
/// is in row-major order.
struct IdxArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

/// Reads a plain or gzip file. Throws UsageError naming the file if it is missing, has another
/// format or other elements than unsigned bytes, or if its size differs from its header.
IdxArray read_idx(const std::filesystem::path& file);

/// Grey images with their labels.
struct LabelledImages {
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t pixels = 0;           ///< rows times columns of one image
  std::vector<std::uint8_t> images;  ///< [count, pixels], 0 black to 255 white
  std::vector<std::uint8_t> labels;  ///< [count]
};

struct TrainAndTest {
  LabelledImages train;
  LabelledImages test;
  std::int64_t classes = 0;  ///< the highest training label + 1; no test label is higher
};

/// Reads training images, training labels, test images and test labels. Throws UsageError if they
/// do not fit together.
TrainAndTest read_image_files(const std::vector<std::filesystem::path>& files);

}  // namespace dtool::trainer
