// SPDX-License-Identifier: MIT
#include "tests/unit/disk_steps.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <mutex>
#include <optional>

namespace dtool::tests {
namespace {

std::mutex mutex;
std::optional<std::vector<std::string>> steps;
std::optional<std::string> unflushable;

void note(const std::string& what, const std::string& path) {
  const std::lock_guard lock(mutex);
  if (steps) steps->push_back(what + path);
}

std::string path_of(int descriptor) {
  std::array<char, PATH_MAX> path;
  const auto link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return size < 0 ? "" : std::string(path.data(), static_cast<std::size_t>(size));
}

bool can_flush(const std::string& path) {
  const std::lock_guard lock(mutex);
  return !unflushable || !path.ends_with(*unflushable);
}

bool is_step(const std::string& step, const std::string& begin, const std::string& ending) {
  return step.starts_with(begin) && step.ends_with(ending);
}

}  // namespace

DiskSteps::DiskSteps() {
  const std::lock_guard lock(mutex);
  steps.emplace();
}

DiskSteps::~DiskSteps() {
  const std::lock_guard lock(mutex);
  steps.reset();
  unflushable.reset();
}

bool DiskSteps::are_flushed_before(const std::string& file, const std::string& later,
                                   const std::string& ending) const {
  bool is_flushed = false;
  for (const std::string& step : *steps) {
    if (is_step(step, later, ending)) return is_flushed;
    if (is_step(step, "write ", file)) is_flushed = false;
    if (step == "flush all" || is_step(step, "flush ", file)) is_flushed = true;
  }
  return false;
}

std::string DiskSteps::text() const {
  std::string text;
  for (const std::string& step : *steps) text += step + "\n";
  return text;
}

void DiskSteps::fail_flushes_of(const std::string& ending) {
  const std::lock_guard lock(mutex);
  unflushable = ending;
}

}  // namespace dtool::tests

using dtool::tests::can_flush;
using dtool::tests::note;
using dtool::tests::path_of;

extern "C" int fsync(int descriptor) {
  const std::string path = path_of(descriptor);
  note("flush ", path);
  if (!can_flush(path)) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

extern "C" int syncfs(int descriptor) noexcept {
  note("flush ", "all");
  return static_cast<int>(::syscall(SYS_syncfs, descriptor));
}

extern "C" ssize_t write(int descriptor, const void* bytes, size_t size) {
  note("write ", path_of(descriptor));
  return ::syscall(SYS_write, descriptor, bytes, size);
}

extern "C" int rename(const char* from, const char* to) noexcept {
  note("name ", from);
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

extern "C" int renameat(int folder, const char* from, int other, const char* to) noexcept {
  note("name ", path_of(folder) + "/" + from);
  return static_cast<int>(::syscall(SYS_renameat2, folder, from, other, to, 0));
}
