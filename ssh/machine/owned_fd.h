// SPDX-License-Identifier: MIT
// File descriptors: an owner, and small operations that several files need.
#pragma once

#include <string_view>
#include <utility>

namespace dtool::ssh {

/// A file descriptor that is closed on destruction.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd() { reset(); }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset();
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Makes `fd` non-blocking, for all processes that share it.
void make_non_blocking(int fd);

/// An unnamed file in memory that holds `bytes`, positioned at its beginning. Close-on-exec. None
/// if there is no room for it; errno says why.
OwnedFd memory_file(std::string_view bytes);

/// An empty unnamed file on disk, in $TMPDIR, else /var/tmp: /tmp often is in memory.
/// Close-on-exec. None if it cannot be made; errno says why.
OwnedFd file_without_name();

}  // namespace dtool::ssh
