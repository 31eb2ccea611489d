// SPDX-License-Identifier: MIT
// Only rank 0 writes here, so a folder has one writer. Its thread takes what has waited longest;
// what a write throws is kept for the next caller.
#include "trainer/training/checkpoint_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "ssh/wire/words.h"
#include "trainer/report/written_file.h"

namespace dtool::trainer {

namespace {

constexpr const char* kEnding = ".safetensors";
constexpr const char* kFormerEnding = ".pt";

/// The step in the name of a checkpoint with this ending; absent for other files.
std::optional<std::int64_t> step_of(const std::filesystem::path& file, std::string_view ending) {
  constexpr std::string_view kBegin = "step_";
  const std::string name = file.filename().string();
  if (!name.starts_with(kBegin) || !name.ends_with(ending)) return std::nullopt;
  return host::parse_number<std::int64_t>(
      std::string_view(name).substr(kBegin.size(), name.size() - kBegin.size() - ending.size()));
}

[[noreturn]] void fail_to_read(const std::filesystem::path& path, std::error_code why) {
  throw std::system_error(why, "cannot read " + path.string());
}

/// Nothing if there is no such folder. One that cannot be read is not empty: a run that takes it
/// for empty begins anew, and thins out what it had.
std::vector<std::filesystem::directory_entry> entries_of(const std::filesystem::path& folder) {
  std::error_code fault;
  const std::filesystem::directory_iterator entries(folder, fault);
  if (fault == std::errc::no_such_file_or_directory) return {};
  if (fault) fail_to_read(folder, fault);
  return {begin(entries), end(entries)};
}

}  // namespace

std::filesystem::path checkpoint_file(const std::filesystem::path& folder, std::int64_t step) {
  return folder / fmt::format("step_{:09}{}", step, kEnding);
}

std::filesystem::path best_checkpoint_file(const std::filesystem::path& folder) {
  return folder / fmt::format("best{}", kEnding);
}

std::vector<KeptCheckpoint> list_checkpoints(const std::filesystem::path& folder) {
  std::vector<KeptCheckpoint> kept;
  for (const auto& each : entries_of(folder)) {
    const auto step = step_of(each.path(), kEnding);
    if (!step) continue;
    std::error_code fault;
    const auto written = each.last_write_time(fault);
    if (fault == std::errc::no_such_file_or_directory) continue;  // thinned out by its writer since
    if (fault) fail_to_read(each.path(), fault);
    kept.push_back({each.path(), *step, written});
  }
  std::ranges::sort(kept, {}, &KeptCheckpoint::step);
  return kept;
}

std::vector<KeptCheckpoint> checkpoints_newest_first(const std::filesystem::path& folder) {
  auto kept = list_checkpoints(folder);
  const auto age = [](const KeptCheckpoint& each) { return std::pair(each.written, each.step); };
  std::ranges::sort(kept, std::greater(), age);
  return kept;
}

std::optional<std::filesystem::path> former_checkpoint(const std::filesystem::path& folder) {
  for (const auto& each : entries_of(folder)) {
    if (step_of(each.path(), kFormerEnding)) return each.path();
  }
  return std::nullopt;
}

void thin_out(const std::filesystem::path& folder, std::int64_t step, std::int64_t keep) {
  std::vector<std::int64_t> steps;
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    if (each.path().extension() == kTemporary) std::filesystem::remove(each.path());
    if (const auto its_step = step_of(each.path(), kEnding); its_step && *its_step <= step) {
      steps.push_back(*its_step);
    }
  }
  std::sort(steps.rbegin(), steps.rend());
  for (std::size_t i = static_cast<std::size_t>(keep); i < steps.size(); ++i) {
    std::filesystem::remove(checkpoint_file(folder, steps[i]));
  }
}

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
