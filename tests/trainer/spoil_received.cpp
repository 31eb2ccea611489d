// SPDX-License-Identifier: MIT
// Preloaded into dtool-trainer-worker by a test: turns one bit in each large piece of data that
// comes from a socket, as a faulty network card would.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace {

constexpr ssize_t kLarge = 4096;

template <class Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void spoil(void* data, ssize_t size) {
  if (size >= kLarge) static_cast<unsigned char*>(data)[size / 2] ^= 0x40;
}

}  // namespace

extern "C" ssize_t recv(int socket, void* data, size_t size, int flags) {
  static const auto real = next(&recv, "recv");
  const ssize_t received = real(socket, data, size, flags);
  spoil(data, received);
  return received;
}

extern "C" ssize_t readv(int file, const iovec* parts, int count) {
  static const auto real = next(&readv, "readv");
  const ssize_t received = real(file, parts, count);
  // gloo reads a header into the first part or what the message carries into one part alone.
  if (count == 1) spoil(parts[0].iov_base, received);
  return received;
}
