// One process at a time fills a folder with data, whoever started it: the ranks of a machine under
// any launcher, two runs at once, several machines on a shared file system.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace dtool::trainer {

/// Holds the lock of a folder from construction to destruction. The kernel gives it up when the
/// process dies, however it dies.
class FolderLock {
 public:
  struct Patience {
    std::chrono::milliseconds silence;  ///< how long a holder may give no sign of life
    std::chrono::milliseconds beat;     ///< how often a holder gives one
  };
  static constexpr Patience kPatience{std::chrono::minutes(3), std::chrono::seconds(5)};

  /// Waits until no other process holds the lock, calling `waiting` once with who does, such as
  /// `process 4711 on red01`, when it is not free at once. Throws UsageError when the file system
  /// has no locks, the folder is not writable, or the holder has been silent for too long (it is
  /// stopped, or its machine is gone).
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
