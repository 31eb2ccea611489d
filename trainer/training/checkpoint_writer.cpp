// SPDX-License-Identifier: MIT
// The thread takes what has waited longest. What a write throws is kept for the next caller.
#include "trainer/training/checkpoint_writer.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace dtool::trainer {
namespace {

std::size_t place_of(CheckpointWriter::Kind kind) {
  return static_cast<std::size_t>(kind);
}

/// The process's only one, for `finish_writing`.
std::mutex the_writers_mutex;
CheckpointWriter* the_writer = nullptr;

}  // namespace

CheckpointWriter::CheckpointWriter(std::chrono::milliseconds patience)
    : patience_(patience), thread_([this] { work(); }) {
  const std::lock_guard lock(the_writers_mutex);
  the_writer = this;
}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  {
    const std::lock_guard lock(the_writers_mutex);
    the_writer = nullptr;
  }
  if (!failure_) return;
  try {
    std::rethrow_exception(failure_);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "dtool-trainer: %s\n", problem.what());
  }
}

std::optional<CheckpointWriter::Kind> CheckpointWriter::next() const {
  if (order_.empty()) return std::nullopt;
  return order_.front();
}

void CheckpointWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_over_ || next(); });
    const auto kind = next();
    if (!kind) return;
    std::optional<Task> task = std::exchange(waiting_[place_of(*kind)], std::nullopt);
    order_.erase(order_.begin());
    is_writing_ = kind;
    lock.unlock();
    changed_.notify_all();  // there is a free place
    std::exception_ptr failure;
    const auto step = task->step;
    try {
      task->write();
    } catch (...) {
      failure = std::current_exception();
    }
    task.reset();  // the task's copy of the state goes with it
    lock.lock();
    is_writing_.reset();
    if (failure) {
      failure_ = failure;
      has_failed_ = true;
      waiting_ = {};
      order_.clear();
    } else if (*kind == Kind::step) {
      news_.written.push_back(step);
    }
    changed_.notify_all();
  }
}

void CheckpointWriter::submit(Kind kind, std::int64_t step, std::function<void()> write) {
  std::optional<Task> left_out;  // destroyed without the lock
  {
    std::unique_lock lock(mutex_);
    auto& place = waiting_[place_of(kind)];
    changed_.wait_for(lock, patience_, [&] { return !place; });
    if (has_failed_) return;
    if (place && kind == Kind::step) news_.left_out.push_back(place->step);
    if (!place) order_.push_back(kind);
    left_out = std::exchange(place, Task{step, std::move(write)});
  }
  changed_.notify_all();
}

CheckpointWriter::News CheckpointWriter::take_news() {
  const std::lock_guard lock(mutex_);
  rethrow();
  return std::exchange(news_, {});
}

void CheckpointWriter::wait_for(Kind kind) {
  std::unique_lock lock(mutex_);
  std::stable_partition(order_.begin(), order_.end(), [&](Kind each) { return each == kind; });
  changed_.wait(lock, [&] { return !waiting_[place_of(kind)] && is_writing_ != kind; });
  rethrow();
}

void CheckpointWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_idle(); });
  rethrow();
}

/// With the lock.
void CheckpointWriter::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void finish_writing(std::chrono::seconds limit) {
  const std::lock_guard its(the_writers_mutex);
  if (the_writer == nullptr) return;
  std::unique_lock lock(the_writer->mutex_);
  the_writer->changed_.wait_for(lock, limit, [] { return the_writer->is_idle(); });
}

}  // namespace dtool::trainer
