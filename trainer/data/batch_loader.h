// SPDX-License-Identifier: MIT
// Gathers the batches of an epoch ahead of the training loop.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "trainer/data/data_set.h"

namespace dtool::trainer {

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
  std::size_t begin_ = 0;  ///< of the next batch to gather; owned by the thread while it runs

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<DrawnBatch> ready_;
  bool done_ = false;     ///< the thread will gather no more
  bool stopped_ = false;  ///< the caller will take no more
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace dtool::trainer
