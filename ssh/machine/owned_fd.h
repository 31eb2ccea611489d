// File descriptors: one that is closed by itself, and what is done with them in several places.
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

/// Reads and writes of `fd` do not wait from now on, whoever shares it.
void make_non_blocking(int fd);

/// A file without a name that is not on disk and holds `bytes`, to be read from its beginning.
/// Close-on-exec. None, and errno says why, where there is no room for it.
OwnedFd memory_file(std::string_view bytes);

}  // namespace dtool::ssh
