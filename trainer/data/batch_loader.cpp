// SPDX-License-Identifier: MIT
// One producer, one consumer, a bounded queue.
#include "trainer/data/batch_loader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace dtool::trainer {

Batch DrawnBatch::from(const DataSet& set) const {
  return tensors.size() == 1 ? gather(set, tensors[0]) : Batch{tensors[0], tensors[1]};
}

BatchLoader::BatchLoader(const DataSet& set, std::vector<std::int64_t> order,
                         std::int64_t batch_size, std::int64_t ahead)
    : set_(set),
      order_(std::move(order)),
      batch_size_(static_cast<std::size_t>(batch_size)),
      ahead_(set.inputs.is_cpu() ? static_cast<std::size_t>(ahead) : 0) {
  if (set.inputs.is_cuda()) {
    // Once an epoch: with each batch's numbers the CPU would wait for the GPU.
    order_on_gpu_ = at::tensor(order_, at::kLong).to(set.inputs.device());
  }
  if (ahead_ > 0) thread_ = std::thread([this] { gather_ahead(); });
}

BatchLoader::~BatchLoader() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<DrawnBatch> BatchLoader::next() {
  if (ahead_ == 0) return draw_next();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || done_; });
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(error_);
    return std::nullopt;
  }
  DrawnBatch batch = std::move(ready_.front());
  ready_.pop_front();
  // The thread is woken once half the queue is free, not for each batch.
  if (ready_.size() <= ahead_ / 2) changed_.notify_all();
  return batch;
}

std::optional<DrawnBatch> BatchLoader::draw_next() {
  if (begin_ == order_.size()) return std::nullopt;
  const auto size = std::min(batch_size_, order_.size() - begin_);
  const auto begin = std::exchange(begin_, begin_ + size);
  if (order_on_gpu_.defined()) {
    return DrawnBatch{{order_on_gpu_.narrow(0, static_cast<std::int64_t>(begin),
                                            static_cast<std::int64_t>(size))}};
  }
  Batch batch = gather(set_, std::span<const std::int64_t>(order_.data() + begin, size));
  return DrawnBatch{{std::move(batch.inputs), std::move(batch.targets)}};
}

void BatchLoader::gather_ahead() {
  try {
    for (;;) {
      auto batch = draw_next();
      std::unique_lock lock(mutex_);
      if (batch) {
        changed_.wait(lock, [this] { return ready_.size() < ahead_ || stopped_; });
        ready_.push_back(std::move(*batch));
      } else {
        done_ = true;
      }
      if (ready_.size() == 1 || done_) changed_.notify_all();
      if (done_ || stopped_) return;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    done_ = true;
    changed_.notify_all();
  }
}

}  // namespace dtool::trainer
