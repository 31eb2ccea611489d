// SPDX-License-Identifier: MIT
// The files of a run's checkpoints: finds them, deletes old ones, and writes them in a thread of
// its own, so that training does not wait for the disk.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace dtool::trainer {

/// `folder/step_000001876.safetensors`.
std::filesystem::path checkpoint_file(const std::filesystem::path& folder, std::int64_t step);

/// The same for the best model: `folder/best.safetensors`.
std::filesystem::path best_checkpoint_file(const std::filesystem::path& folder);

/// An existing checkpoint.
struct KeptCheckpoint {
  std::filesystem::path file;
  std::int64_t step = 0;
  std::filesystem::file_time_type written;
};

/// The checkpoints of `folder`, by step; none if there is no such folder. Throws std::system_error
/// if it cannot be read.
std::vector<KeptCheckpoint> list_checkpoints(const std::filesystem::path& folder);

/// The same, by the time at which they were written; the newest comes first.
std::vector<KeptCheckpoint> checkpoints_newest_first(const std::filesystem::path& folder);

/// A checkpoint of `folder` in the format of former versions, which is not read; absent if there is
/// none.
std::optional<std::filesystem::path> former_checkpoint(const std::filesystem::path& folder);

/// Deletes the checkpoints of steps up to `step`, except the newest `keep` of them, and the
/// temporary files of killed writers.
void thin_out(const std::filesystem::path& folder, std::int64_t step, std::int64_t keep);

/// Rank 0 has one. While one file is being written, at most one more of each kind waits: a newer
/// one takes its place.
class CheckpointWriter {
 public:
  enum class Kind { step, best };

  /// `patience`: how long `submit` waits for a free place before it leaves out the one that waits.
  explicit CheckpointWriter(std::chrono::milliseconds patience);
  /// Writes what waits. A failure that nobody has heard of is told on stderr.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Has the thread call `write`, which puts the state after `step` steps on the disk and throws if
  /// it cannot. After a failure nothing more is written.
  void submit(Kind kind, std::int64_t step, std::function<void()> write);

  /// The steps of what was written, and of what was left out, since the last call, in their order.
  /// Without any it costs a look at a number.
  struct News {
    std::vector<std::int64_t> written;   ///< the written steps of Kind::step
    std::vector<std::int64_t> left_out;  ///< the left-out steps of Kind::step
  };
  /// Throws what a write threw.
  News take_news();

  /// Waits until the newest of `kind` is on the disk, which now comes before other kinds. Throws
  /// what a write threw.
  void wait_for(Kind kind);
  /// Waits until nothing is left to write. Throws what a write threw.
  void wait();

 private:
  struct Task {
    std::int64_t step = 0;
    std::function<void()> write;
  };
  static constexpr std::size_t kKinds = 2;
  using Waiting = std::array<std::optional<Task>, kKinds>;

  friend void finish_writing(std::chrono::seconds limit);
  void work();
  std::optional<Kind> next() const;
  bool is_idle() const { return !is_writing_ && !next(); }
  void rethrow();

  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Waiting waiting_;
  std::vector<Kind> order_;  ///< the order of the kinds that wait
  std::optional<Kind> is_writing_;
  bool is_over_ = false;
  News news_;
  std::exception_ptr failure_;
  bool has_failed_ = false;
  std::thread thread_;  ///< last, so that it starts when the others are there
};

/// Waits until this process has written what it has begun or has waiting, for `limit` at most: for
/// a process that ends without destructors.
void finish_writing(std::chrono::seconds limit);

}  // namespace dtool::trainer
