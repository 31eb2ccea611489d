// SPDX-License-Identifier: MIT
#include "ssh/machine/owned_fd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>

namespace dtool::ssh {

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

void OwnedFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void make_non_blocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

OwnedFd memory_file(std::string_view bytes) {
  OwnedFd file(::memfd_create("dtool", MFD_CLOEXEC));
  if (!file) return {};
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count <= 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

OwnedFd file_without_name() {
  const char* chosen = std::getenv("TMPDIR");
  for (const char* folder : {chosen, "/var/tmp", "/tmp"}) {
    if (folder == nullptr) continue;
    std::string name = std::string(folder) + "/dtool.XXXXXX";
    OwnedFd file(::mkostemp(name.data(), O_CLOEXEC));
    if (!file) continue;
    ::unlink(name.c_str());
    return file;
  }
  return {};
}

}  // namespace dtool::ssh
