// SPDX-License-Identifier: MIT
// Uses memfd_create; the other process opens the memory through /proc.
#include "trainer/ranks/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>

namespace dtool::trainer {
namespace {

constexpr int kFrozen = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

std::byte* map(int descriptor, std::size_t size, int flags, void* where = nullptr) {
  void* mapped = mmap(where, size, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

/// What this machine can still give, swap included, in bytes; without end if it does not say.
std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t bytes = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kilobytes = 0;
    if (!(words >> name >> kilobytes)) continue;
    if (name == "MemAvailable:" || name == "SwapFree:") bytes += kilobytes << 10U;
  }
  return bytes == 0 ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

bool fail(int error) {
  errno = error;
  return false;
}

/// False with errno. The limit of files' sizes (ulimit -f) counts here too, and whoever exceeds it
/// is killed.
bool resize(int descriptor, std::size_t size) {
  rlimit most{};
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && size > most.rlim_cur) return fail(EFBIG);
  return ftruncate(descriptor, static_cast<off_t>(size)) == 0;
}

/// False with errno. Takes the pages now: without them, a write to this memory would end the
/// process (SIGBUS, or SIGKILL for what Linux promised and does not have).
bool reserve(int descriptor, std::size_t size) {
  if (size > available_memory()) return fail(ENOMEM);
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(descriptor, 0, static_cast<off_t>(size));
  const bool is_unknown_here = error == EOPNOTSUPP || error == EINVAL || error == ENOSYS;
  return error == 0 || is_unknown_here || fail(error);
}

/// Only this user's own memory of that size, and nothing that others may write to.
bool is_expected(int descriptor, std::size_t size) {
  struct stat found {};
  return fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) &&
         found.st_size == static_cast<off_t>(size) && found.st_uid == geteuid() &&
         (found.st_mode & 077) == 0;
}

/// Closed if there is none. Nothing but such a name, and nothing but such a file: a pipe would keep
/// us waiting.
host::Descriptor open_memory(const std::string& name, std::size_t size, int access) {
  if (!name.starts_with("/proc/")) return {};
  host::Descriptor memory(::open(name.c_str(), access | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (memory && !is_expected(memory.get(), size)) memory.reset();
  return memory;
}

}  // namespace

SharedMemory::SharedMemory(std::size_t size)
    : size_(size), file_(memfd_create("dtool-trainer", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (file_ && fchmod(file_.get(), 0600) == 0 && resize(file_.get(), size) &&
      reserve(file_.get(), size)) {
    data_ = map(file_.get(), size, MAP_SHARED);
  }
  if (data_ == nullptr)
    throw std::system_error(errno, std::generic_category(), "cannot make shared memory");
  name_ = fmt::format("/proc/{}/fd/{}", getpid(), file_.get());
}

std::optional<SharedMemory> SharedMemory::open(const std::string& name, std::size_t size) {
  const host::Descriptor file = open_memory(name, size, O_RDWR);
  if (!file) return std::nullopt;
  SharedMemory memory;
  memory.data_ = map(file.get(), size, MAP_SHARED);
  memory.size_ = size;
  if (memory.data_ == nullptr) return std::nullopt;
  return memory;
}

std::optional<SharedMemory> SharedMemory::open_frozen(const std::string& name, std::size_t size) {
  const host::Descriptor file = open_memory(name, size, O_RDONLY);
  if (!file) return std::nullopt;
  SharedMemory memory;
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals >= 0 && (seals & kFrozen) == kFrozen) {
    memory.data_ = map(file.get(), size, MAP_PRIVATE);
    memory.size_ = size;
  }
  if (memory.data_ == nullptr) return std::nullopt;
  return memory;
}

void SharedMemory::freeze() {
  // Linux seals nothing that a process could still write to.
  if (map(file_.get(), size_, MAP_PRIVATE | MAP_FIXED, data_) == nullptr ||
      fcntl(file_.get(), F_ADD_SEALS, kFrozen) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot freeze shared memory");
  }
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      file_(std::move(other.file_)),
      name_(std::move(other.name_)) {}

}  // namespace dtool::trainer
