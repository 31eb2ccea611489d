// SPDX-License-Identifier: MIT
// Preloaded into dtool-trainer-worker by a test: a disk for files named `*.partial` that takes
// SLOW_DISK_BYTES_PER_S, and is full after SLOW_DISK_BYTES of one file, if these are set.
#include <dlfcn.h>
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

bool is_on_slow_disk(int descriptor) {
  char name[4096];
  const auto link = "/proc/self/fd/" + std::to_string(descriptor);
  const auto size = readlink(link.c_str(), name, sizeof name);
  return size > 0 && std::string_view(name, static_cast<std::size_t>(size)).ends_with(".partial");
}

double number(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? 0 : std::atof(value);
}

}  // namespace

extern "C" ssize_t write(int descriptor, const void* data, size_t size) {
  static const auto real = reinterpret_cast<decltype(&write)>(dlsym(RTLD_NEXT, "write"));
  if (!is_on_slow_disk(descriptor)) return real(descriptor, data, size);
  const double room = number("SLOW_DISK_BYTES");
  if (room > 0 && static_cast<double>(lseek(descriptor, 0, SEEK_CUR)) >= room) {
    errno = ENOSPC;
    return -1;
  }
  size = std::min(size, kAtOnce);
  if (const double rate = number("SLOW_DISK_BYTES_PER_S"); rate > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(size) / rate));
  }
  return real(descriptor, data, size);
}
