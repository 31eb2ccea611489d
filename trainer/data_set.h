// A data set in memory, as tensors on the rank's device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>

#include "trainer/experiment.h"

namespace dtool::trainer {

/// Images with their classes.
struct DataSet {
  at::Tensor images;  ///< [samples, pixels] float, 0 black to 1 white
  at::Tensor labels;  ///< [samples] int64, 0 to classes - 1

  std::int64_t size() const { return labels.size(0); }
};

struct DataSets {
  DataSet train;
  DataSet test;
  std::int64_t classes = 0;
};

/// Reads or draws the sets that the experiment asks for. Throws UsageError as idx.h says, and when
/// a test label is of no training class.
DataSets load_data(const DataSettings& settings, at::Device device);

}  // namespace dtool::trainer
