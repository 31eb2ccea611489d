// One producer, one consumer, a bounded queue.
#include "trainer/batch_loader.h"

#include <algorithm>
#include <utility>

namespace dtool::trainer {

BatchLoader::BatchLoader(const DataSet& set, std::vector<std::int64_t> order,
                         std::int64_t batch_size, std::int64_t ahead)
    : set_(set),
      order_(std::move(order)),
      batch_size_(static_cast<std::size_t>(batch_size)),
      ahead_(set.inputs.is_cpu() ? static_cast<std::size_t>(ahead) : 0) {
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

std::optional<Batch> BatchLoader::next() {
  if (ahead_ == 0) return gather_next();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || done_; });
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(error_);
    return std::nullopt;
  }
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  // The thread is woken once half the queue is free, not for each batch.
  if (ready_.size() <= ahead_ / 2) changed_.notify_all();
  return batch;
}

std::optional<Batch> BatchLoader::gather_next() {
  if (begin_ == order_.size()) return std::nullopt;
  const auto size = std::min(batch_size_, order_.size() - begin_);
  const std::span samples(order_.data() + begin_, size);
  begin_ += size;
  return gather(set_, samples);
}

void BatchLoader::gather_ahead() {
  try {
    for (;;) {
      auto batch = gather_next();
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
