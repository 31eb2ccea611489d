#include "trainer/training/background_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dtool::trainer {

BackgroundWriter::~BackgroundWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundWriter::add(Writing writing, std::int64_t most) {
  {
    const std::lock_guard lock(mutex_);
    throw_failure();
    const auto oldest_of_kind = [&] {
      const auto first = std::next(waiting_.begin(), is_writing_ ? 1 : 0);
      return std::find_if(first, waiting_.end(),
                          [&](const Writing& each) { return each.kind == writing.kind; });
    };
    const auto has_too_many = [&] {
      std::int64_t count = 0;
      std::int64_t bytes = writing.bytes;
      for (auto each = oldest_of_kind(); each != waiting_.end(); ++each) {
        bytes += each->bytes;
        count += each->kind == writing.kind ? 1 : 0;
      }
      return count > 0 && (count >= most || bytes > kMostBytes);
    };
    while (has_too_many()) waiting_.erase(oldest_of_kind());
    waiting_.push_back(std::move(writing));
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  }
  changed_.notify_all();
}

void BackgroundWriter::check() {
  const std::lock_guard lock(mutex_);
  throw_failure();
}

void BackgroundWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() || failure_; });
  throw_failure();
}

std::int64_t BackgroundWriter::last_written(const std::string& kind) {
  const std::lock_guard lock(mutex_);
  const auto of_kind = written_.find(kind);
  return of_kind == written_.end() ? -1 : of_kind->second;
}

void BackgroundWriter::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
    if (is_over_ || failure_) return;
    is_writing_ = true;
    const Writing& now = waiting_.front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      now.write();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    is_writing_ = false;
    failure_ = failure;
    if (!failure) written_[now.kind] = now.number;
    waiting_.pop_front();
    changed_.notify_all();
  }
}

void BackgroundWriter::throw_failure() {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace dtool::trainer
