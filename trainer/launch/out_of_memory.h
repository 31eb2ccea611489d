// Whether the kernel's out-of-memory killer has been at work: a worker that it ends gets SIGKILL
// and nobody says why.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace dtool::trainer {

/// How many processes the kernel has ended for want of memory: in this process's memory cgroup
/// (version 2's memory.events or version 1's memory.oom_control), or, where that tells nothing, on
/// the whole machine (/proc/vmstat). `root` is for tests.
std::int64_t count_out_of_memory_kills(const std::filesystem::path& root = "/");

/// Remembers the count of a while ago.
class OutOfMemoryWatch {
 public:
  /// Call at least every few seconds; it looks every other second.
  void remember() {
    const auto now = std::chrono::steady_clock::now();
    if (now - at_ < std::chrono::seconds(2)) return;
    before_ = std::exchange(latest_, count_out_of_memory_kills());
    at_ = now;
  }

  /// Whether a process has been ended in the last two to four seconds.
  bool has_happened() const { return count_out_of_memory_kills() > before_; }

 private:
  std::int64_t latest_ = count_out_of_memory_kills();
  std::int64_t before_ = latest_;
  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now();
};

}  // namespace dtool::trainer
