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

using Clock = LastSign::Clock;

constexpr const char* kName = ".dtool-lock";

timespec last_touched(int descriptor) {
  struct stat state {};
  fstat(descriptor, &state);
  return state.st_mtim;
}

std::string this_process() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("process {} on {}", getpid(), host);
}

}  // namespace

LastSign::Clock::duration LastSign::silence(const timespec& sign, Clock::time_point now) {
  if (sign.tv_sec != sign_.tv_sec || sign.tv_nsec != sign_.tv_nsec) {
    sign_ = sign;
    since_ = now;
  }
  return now - since_;
}

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
  LastSign last(last_touched(descriptor_), Clock::now());
  auto pause = std::chrono::milliseconds(10);
  while (!take()) {
    if (last.silence(last_touched(descriptor_), Clock::now()) > patience_.silence) {
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
