// Writes files in a thread of its own, so that training goes on while a slow disk takes its time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace dtool::trainer {

/// One file, and what to do for it. It holds `bytes` of memory until it is done.
struct Writing {
  std::string kind;  ///< where too many wait, the oldest of the same kind are left out
  std::int64_t number = 0;
  std::int64_t bytes = 0;
  std::function<void()> write;
};

/// Does one after another, in order. If one throws, so does the next call of `add`, `check` or
/// `finish`, and the others are left out.
class BackgroundWriter {
 public:
  BackgroundWriter() = default;
  /// Waits for the one under way; those that still wait are left out.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// At most `most` of a kind wait, and only one where together they would hold more than
  /// kMostBytes. The newest is never left out.
  void add(Writing writing, std::int64_t most);

  /// Throws what a writing threw.
  void check();
  /// Waits until all are done.
  void finish();

  /// The number of the last one of this kind that was done; -1: none.
  std::int64_t last_written(const std::string& kind);

  static constexpr std::int64_t kMostBytes = 256 << 20;

 private:
  void work();
  void throw_failure();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Writing> waiting_;  ///< the first may be under way
  bool is_writing_ = false;
  bool is_over_ = false;
  std::exception_ptr failure_;
  std::map<std::string, std::int64_t> written_;  ///< the last number of each kind
  std::thread thread_;                           ///< from the first `add` on
};

}  // namespace dtool::trainer
