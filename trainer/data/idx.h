// SPDX-License-Identifier: MIT
// Reads IDX files, the format of MNIST and its relatives: http://yann.lecun.com/exdb/mnist/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory_resource>
#include <vector>

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

}  // namespace dtool::trainer
