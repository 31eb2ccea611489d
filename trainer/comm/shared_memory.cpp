// SPDX-License-Identifier: MIT
// Uses memfd_create; the other process opens the memory through /proc.
#include "trainer/comm/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace dtool::trainer {
namespace {

std::byte* map(int descriptor, std::size_t size) {
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

}  // namespace

SharedMemory::SharedMemory(std::size_t size) : size_(size) {
  descriptor_ = memfd_create("dtool-trainer", MFD_CLOEXEC);
  if (descriptor_ >= 0 && ftruncate(descriptor_, static_cast<off_t>(size)) == 0) {
    data_ = map(descriptor_, size);
  }
  if (data_ == nullptr) {
    const int error = errno;
    if (descriptor_ >= 0) close(descriptor_);
    throw std::system_error(error, std::generic_category(), "cannot make shared memory");
  }
  name_ = fmt::format("/proc/{}/fd/{}", getpid(), descriptor_);
}

std::optional<SharedMemory> SharedMemory::open(const std::string& name, std::size_t size) {
  // Nothing but such a name, and nothing but such a file: a pipe would keep us waiting.
  if (!name.starts_with("/proc/")) return std::nullopt;
  const int descriptor = ::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return std::nullopt;
  SharedMemory memory;
  struct stat found {};
  if (fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) &&
      found.st_size == static_cast<off_t>(size)) {
    memory.data_ = map(descriptor, size);
  }
  close(descriptor);
  if (memory.data_ == nullptr) return std::nullopt;
  memory.size_ = size;
  return memory;
}

SharedMemory::~SharedMemory() {
  forget_name();
  if (data_ != nullptr) munmap(data_, size_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      name_(std::move(other.name_)) {}

void SharedMemory::forget_name() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

}  // namespace dtool::trainer
