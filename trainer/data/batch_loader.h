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

/// Hands out the samples of `order` batch by batch. `ahead` batches are gathered by a thread of its
/// own while the caller computes; with 0, and on a GPU, which gathers by itself, there is no
/// thread. `set` must outlive it.
class BatchLoader {
 public:
  BatchLoader(const DataSet& set, std::vector<std::int64_t> order, std::int64_t batch_size,
              std::int64_t ahead);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The next batch, the last one perhaps smaller; absent at the end. Throws what gathering threw.
  std::optional<Batch> next();

 private:
  std::optional<Batch> gather_next();
  void gather_ahead();

  const DataSet& set_;
  std::vector<std::int64_t> order_;
  at::Tensor order_on_gpu_;  ///< undefined where the set is not on one
  std::size_t batch_size_;
  std::size_t ahead_;
  std::size_t begin_ = 0;  ///< of the next batch to gather; the thread's while it runs

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  bool done_ = false;     ///< the thread gathers no more
  bool stopped_ = false;  ///< nobody takes any more
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace dtool::trainer
