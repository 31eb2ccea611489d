// SPDX-License-Identifier: MIT
// Preloaded into dtool-trainer-worker by a test: a disk for files named `*.partial` that takes
// SLOW_DISK_BYTES_PER_S, and is full after SLOW_DISK_BYTES of one file, if these are set. Files
// named `*.safetensors` are read with SLOW_DISK_READ_BYTES_PER_S. There is no memory for a piece of
// shared memory that is larger than SHARED_MEMORY_BYTES.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace {

constexpr size_t kAtOnce = 16384;

bool has_ending(int descriptor, std::string_view ending) {
  char name[4096];
  const auto link = "/proc/self/fd/" + std::to_string(descriptor);
  const auto size = readlink(link.c_str(), name, sizeof name);
  return size > 0 && std::string_view(name, static_cast<std::size_t>(size)).ends_with(ending);
}

double number(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? 0 : std::atof(value);
}

void take_time(size_t size, const char* bytes_per_s) {
  const double rate = number(bytes_per_s);
  if (rate <= 0) return;
  std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(size) / rate));
}

}  // namespace

extern "C" ssize_t write(int descriptor, const void* data, size_t size) {
  static const auto real = reinterpret_cast<decltype(&write)>(dlsym(RTLD_NEXT, "write"));
  if (!has_ending(descriptor, ".partial")) return real(descriptor, data, size);
  const double room = number("SLOW_DISK_BYTES");
  if (room > 0 && static_cast<double>(lseek(descriptor, 0, SEEK_CUR)) >= room) {
    errno = ENOSPC;
    return -1;
  }
  size = std::min(size, kAtOnce);
  take_time(size, "SLOW_DISK_BYTES_PER_S");
  return real(descriptor, data, size);
}

extern "C" ssize_t pread(int descriptor, void* data, size_t size, off_t offset) {
  static const auto real = reinterpret_cast<decltype(&pread)>(dlsym(RTLD_NEXT, "pread"));
  if (!has_ending(descriptor, ".safetensors")) return real(descriptor, data, size, offset);
  size = std::min(size, kAtOnce);
  take_time(size, "SLOW_DISK_READ_BYTES_PER_S");
  return real(descriptor, data, size, offset);
}

extern "C" int posix_fallocate(int descriptor, off_t offset, off_t size) {
  static const auto real =
      reinterpret_cast<decltype(&posix_fallocate)>(dlsym(RTLD_NEXT, "posix_fallocate"));
  const double room = number("SHARED_MEMORY_BYTES");
  const bool is_memory = has_ending(descriptor, "/memfd:dtool-trainer (deleted)");
  if (is_memory && room > 0 && static_cast<double>(size) > room) return ENOSPC;
  return real(descriptor, offset, size);
}
