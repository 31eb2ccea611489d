// SPDX-License-Identifier: MIT
// A data set in memory and the batches gathered from it.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "trainer/data/data_settings.h"
#include "trainer/data/sampler.h"

namespace dtool::trainer {

/// Samples and their targets.
struct DataSet {
  /// [samples, values], float, uint8 or int64; a byte b means b / 255, an int64 is a token.
  at::Tensor inputs;
  /// [samples] int64, a class each; or [samples, outputs], float or int64.
  at::Tensor targets;

  std::int64_t size() const { return inputs.size(0); }
};

struct DataSets {
  DataSet train;
  DataSet test;
  Shape shape;               ///< the shape of one sample: [values] or [channels, rows, columns]
  std::int64_t outputs = 0;  ///< number of classes, or of values to predict
};

/// Some samples, ready for a model.
struct Batch {
  at::Tensor inputs;   ///< [batch, values], float or int64
  at::Tensor targets;  ///< [batch] or [batch, outputs], as in the set

  std::int64_t size() const { return inputs.size(0); }
};

/// Where the tensors of the sets lie: the ranks of a machine may share it.
using SampleMemory = std::shared_ptr<std::pmr::memory_resource>;

/// Reads or draws the sets of a workload, on the CPU. The memory, a piece for each of the four
/// tensors (contiguous, of the types above), comes from `memory`, which they keep alive; the test
/// set may be the training set. Throws UsageError.
using Loader = std::function<DataSets(const SampleMemory& memory)>;

/// A tensor without values whose memory comes from `memory`.
at::Tensor empty_in(const SampleMemory& memory, at::IntArrayRef shape, at::ScalarType type);

/// A `Loader` for the [data] table; files are read from the paths that `provide_data` has set.
/// Throws UsageError as idx.h and csv.h say, and if a test label is above all training classes.
DataSets load_data(const DataSettings& settings, const SampleMemory& memory);

/// The same for `npy` and `python`. Throws UsageError that names the file or the function, also for
/// numbers that are not finite, and classes below 0 or above those of the training.
DataSets load_arrays(const DataSettings& settings, const SampleMemory& memory);

/// Copies the samples with these numbers, in this order.
Batch gather(const DataSet& set, std::span<const std::int64_t> samples);

/// The same with the numbers ([batch] int64) on the set's device.
Batch gather(const DataSet& set, const at::Tensor& samples);

/// Copies the samples of a range.
Batch gather(const DataSet& set, Range range);

// Gathers the batches of an epoch ahead of the training loop.

/// The samples of a batch: gathered, or on a GPU still their numbers. Gathering them there is part
/// of the step, for a CUDA graph to record.
struct DrawnBatch {
  std::vector<at::Tensor> tensors;  ///< inputs and targets, or [batch] int64

  std::int64_t size() const { return tensors[0].size(0); }
  Batch from(const DataSet& set) const;
};

/// Hands out the samples of `order` batch by batch. A separate thread gathers `ahead` batches in
/// advance while the caller computes. There is no thread with `ahead` 0, nor on a GPU. `set` must
/// outlive it.
class BatchLoader {
 public:
  BatchLoader(const DataSet& set, std::vector<std::int64_t> order, std::int64_t batch_size,
              std::int64_t ahead);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The next batch (the last one may be smaller); absent at the end. Throws exceptions of the
  /// gathering.
  std::optional<DrawnBatch> next();

 private:
  std::optional<DrawnBatch> draw_next();
  void gather_ahead();

  const DataSet& set_;
  std::vector<std::int64_t> order_;
  at::Tensor order_on_gpu_;  ///< undefined unless the set is on a GPU
  std::size_t batch_size_;
  std::size_t ahead_;
  /// The place where the next batch to gather begins; owned by the thread while it runs.
  std::size_t begin_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<DrawnBatch> ready_;
  bool done_ = false;     ///< the thread will gather no more
  bool stopped_ = false;  ///< the caller will take no more
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace dtool::trainer
