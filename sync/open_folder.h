// A folder that is held open, so that files below it are found by short names: on the way to each
// of a hundred thousand files the kernel then has fewer folders to go through.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

namespace dtool::tree_sync {

class OpenFolder {
 public:
  /// Where it cannot be opened, nothing is found below it.
  explicit OpenFolder(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}
  ~OpenFolder() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  int fd() const { return fd_; }

  /// What bears that name below the folder, links not followed. Nothing if that cannot be known;
  /// then errno says why.
  std::optional<struct stat> look_at(const std::string& name) const {
    struct stat status {};
    if (::fstatat(fd_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    return status;
  }

 private:
  int fd_;
};

}  // namespace dtool::tree_sync
