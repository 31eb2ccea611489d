// SPDX-License-Identifier: MIT
// Makes sure that the files of a data set are on this machine before anything reads them. One
// process downloads or copies them while the others wait.
#pragma once

#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "killfiles/channel/wire.h"
#include "trainer/data/download.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// When an existing file is compared with its checksum.
enum class Compared {
  always,
  /// Files are accepted unchecked if all are there; the check prevents a mix of two sets.
  when_others_are_missing,
};

/// One file of a data set. `NAME.gz` may also be there unpacked, as `NAME`.
struct DataFile {
  WantedFile wanted;  ///< the file; without a sha256 it must already be there
  Compared compared = Compared::always;
};

/// Where the files are and where they come from, according to an experiment.
struct DataPlace {
  std::string path{};     ///< a folder; may contain `~` and variables
  std::string copy_to{};  ///< a folder to copy them to and read them from; may be empty
  Mirrors mirrors{};      ///< empty: nothing is downloaded
  /// Advice: what the user can do if a file is missing and nothing is downloaded.
  std::string hint{};
};

/// Whether to report the wait for another process: one rank per machine does.
enum class Waits { told, silent };

/// The files' paths on this machine, in the order of `files`, after all are there and correct.
/// Throws UsageError if one is missing or is the wrong file, and as `download` does.
std::vector<std::filesystem::path> provide_files(const std::vector<DataFile>& files,
                                                 const DataPlace& place,
                                                 const Environment& environment, Waits waits,
                                                 TransferProgress& progress);

// Paths that mean a different folder on each machine: they contain `~` and environment variables.

/// `text` with a leading `~` replaced by HOME and each `$NAME` or `${NAME}` by that variable. `$$`
/// gives one `$`. Throws UsageError naming `key` and the variable if it is unset or empty, so that
/// `$TMPDIR/data` never becomes `/data`.
std::filesystem::path expand_path(const std::string& key, const std::string& text,
                                  const Environment& environment);

// Ensures that one process at a time fills a folder with data: among the ranks of a machine under
// any launcher, two runs at once, or several machines on a shared file system.

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
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  void wait(const std::function<void(const std::string&)>& waiting);
  bool take();
  std::string holder() const;
  void give_signs(const std::stop_token& ended);

  std::filesystem::path file_;
  Patience patience_;
  host::Descriptor descriptor_;
  std::jthread signs_;
};

}  // namespace dtool::trainer
