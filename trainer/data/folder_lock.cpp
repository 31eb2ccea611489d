// SPDX-License-Identifier: MIT
// Uses flock(2), which Linux also supports over NFS. The lock file is never deleted: otherwise two
// processes could lock two files of the same name.
#include "trainer/data/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kName = ".dtool-lock";

/// When the file was last touched, as its file system's clock says; only compared for equality.
timespec last_sign(int descriptor) {
  struct stat state {};
  fstat(descriptor, &state);
  return state.st_mtim;
}

bool same(const timespec& one, const timespec& other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

std::string this_process() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("process {} on {}", getpid(), host);
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder,
                       const std::function<void(const std::string&)>& waiting, Patience patience)
    : file_(folder / kName),
      patience_(patience),
      descriptor_(open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) {
    throw UsageError(
        fmt::format("cannot write into '{}': {}", folder.string(), std::strerror(errno)),
        "give a folder of your own in data.path");
  }
  try {
    wait(waiting);
  } catch (...) {
    close(descriptor_);
    throw;
  }
  // The holder's name is only for messages, so a failure to write it is ignored.
  const std::string me = this_process();
  [[maybe_unused]] const bool written =
      ftruncate(descriptor_, 0) == 0 && pwrite(descriptor_, me.data(), me.size(), 0) >= 0;
  signs_ = std::thread([this] { give_signs(); });
}

FolderLock::~FolderLock() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ending_.notify_one();
  signs_.join();
  close(descriptor_);
}

bool FolderLock::take() {
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK || errno == EINTR) return false;
  throw UsageError(fmt::format("cannot lock {}: {}", file_.string(), std::strerror(errno)),
                   "give a folder on a disk of this machine in data.path, or put the files there");
}

void FolderLock::wait(const std::function<void(const std::string&)>& waiting) {
  if (take()) return;
  waiting(holder());
  timespec sign = last_sign(descriptor_);
  auto since = Clock::now();
  auto pause = std::chrono::milliseconds(10);
  while (!take()) {
    if (const timespec now = last_sign(descriptor_); !same(now, sign)) {
      sign = now;
      since = Clock::now();
    }
    if (Clock::now() - since > patience_.silence) {
      throw UsageError(
          fmt::format("{} holds {} and has given no sign of life for {} s", holder(),
                      file_.string(),
                      std::chrono::duration_cast<std::chrono::seconds>(patience_.silence).count()),
          "end that process, or give another data.path");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(250));
  }
}

std::string FolderLock::holder() const {
  char text[512];
  const auto size = pread(descriptor_, text, sizeof text, 0);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "another process";
}

void FolderLock::give_signs() {
  std::unique_lock lock(mutex_);
  do {
    futimens(descriptor_, nullptr);
  } while (!ending_.wait_for(lock, patience_.beat, [this] { return ended_; }));
}

}  // namespace dtool::trainer
