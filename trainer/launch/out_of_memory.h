// Whether the kernel's out-of-memory killer has been at work: a worker that it ends gets SIGKILL
// and nobody says why.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace dtool::trainer {

/// How many processes the kernel has ended for want of memory: in this process's memory cgroup
/// (version 2's memory.events or version 1's memory.oom_control), or, where that tells nothing, on
/// the whole machine (/proc/vmstat). `root` is for tests.
std::int64_t count_out_of_memory_kills(const std::filesystem::path& root = "/");

/// Remembers the count of a while ago.
class OutOfMemoryWatch {
 public:
  /// Call now and then, at most about once a second, while nothing is amiss.
  void nothing_happened() { count_ = count_out_of_memory_kills(); }

  /// Whether a process has been ended since then.
  bool has_happened() const { return count_out_of_memory_kills() > count_; }

 private:
  std::int64_t count_ = count_out_of_memory_kills();
};

}  // namespace dtool::trainer
