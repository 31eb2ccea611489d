// SPDX-License-Identifier: MIT
// A data set in memory and the batches gathered from it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>

#include "trainer/data/data_settings.h"
#include "trainer/data/sampler.h"

namespace dtool::trainer {

/// Samples and their targets.
struct DataSet {
  at::Tensor inputs;   ///< [samples, values], float or uint8; a byte b means b / 255
  at::Tensor targets;  ///< [samples] int64, a class each; or [samples, outputs] float

  std::int64_t size() const { return inputs.size(0); }
};

struct DataSets {
  DataSet train;
  DataSet test;
  Shape shape;               ///< of one sample: [values] or [channels, rows, columns]
  std::int64_t outputs = 0;  ///< number of classes, or of values to predict
};

/// Some samples, ready for a model.
struct Batch {
  at::Tensor inputs;   ///< [batch, values] float
  at::Tensor targets;  ///< [batch] int64 or [batch, outputs] float

  std::int64_t size() const { return inputs.size(0); }
};

/// Reads or draws the sets of the experiment, on the CPU; files are read from the paths that
/// `provide_data` has set. Their memory, a piece for each of the four tensors, comes from `memory`,
/// which they keep alive. Throws UsageError as idx.h and csv.h say, and if a test label is above
/// all training classes.
DataSets load_data(const DataSettings& settings,
                   const std::shared_ptr<std::pmr::memory_resource>& memory);

/// Copies the samples with these numbers, in this order.
Batch gather(const DataSet& set, std::span<const std::int64_t> samples);

/// The same with the numbers ([batch] int64) on the set's device.
Batch gather(const DataSet& set, const at::Tensor& samples);

/// Copies the samples of a range.
Batch gather(const DataSet& set, Range range);

}  // namespace dtool::trainer
