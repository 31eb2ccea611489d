// SPDX-License-Identifier: MIT
// Ensures that one process at a time fills a folder with data: among the ranks of a machine under
// any launcher, two runs at once, or several machines on a shared file system.
#pragma once

#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace dtool::trainer {

/// When a holder gave its last sign of life: when its lock file was touched, as the file system's
/// clock says. That clock may differ from ours, so signs are only compared for equality.
class LastSign {
 public:
  using Clock = std::chrono::steady_clock;

  LastSign(const timespec& sign, Clock::time_point now) : sign_(sign), since_(now) {}

  /// How long the holder has been silent, if `sign` is the last one now.
  Clock::duration silence(const timespec& sign, Clock::time_point now);

 private:
  timespec sign_;
  Clock::time_point since_;
};

/// Holds the lock of a folder from construction to destruction. The kernel releases it when the
/// process dies, for whatever reason.
class FolderLock {
 public:
  struct Patience {
    std::chrono::milliseconds silence;  ///< how long a holder may be silent
    std::chrono::milliseconds beat;     ///< time between two signs of life of a holder
  };
  static constexpr Patience kPatience{std::chrono::minutes(3), std::chrono::seconds(5)};

  /// Waits until no other process holds the lock. If the lock is not free at once, calls `waiting`
  /// once with the holder's name, such as `process 4711 on red01`. Throws UsageError if the file
  /// system has no locks, the folder is not writable, or the holder has been silent for too long
  /// (it is stopped, or its machine is gone).
  FolderLock(const std::filesystem::path& folder,
             const std::function<void(const std::string& holder)>& waiting,
             Patience patience = kPatience);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  void wait(const std::function<void(const std::string&)>& waiting);
  bool take();
  std::string holder() const;
  void give_signs();

  std::filesystem::path file_;
  Patience patience_;
  int descriptor_ = -1;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ = false;
  std::thread signs_;
};

}  // namespace dtool::trainer
