// SPDX-License-Identifier: MIT
#include "sync/open_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

namespace dtool::tree_sync {
namespace {

constexpr int kPathToFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

}  // namespace

ssh::OwnedFd open_step_by_step(int folder, const std::string& name, int flags) {
  ssh::OwnedFd above;
  std::string_view rest = name;
  for (;;) {
    const std::size_t slash = rest.find('/');
    const std::string part(rest.substr(0, slash));
    const int from = above ? above.get() : folder;
    if (part.empty() || part == "..") {
      errno = EXDEV;  // the same error that openat2 gives
      return {};
    }
    if (slash == rest.npos)
      return ssh::OwnedFd(::openat(from, part.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
    ssh::OwnedFd next(::openat(from, part.c_str(), kPathToFolder));
    if (!next) return {};
    above = std::move(next);
    rest.remove_prefix(slash + 1);
  }
}

ssh::OwnedFd open_below(int folder, const std::string& name, int flags) {
  struct open_how how {};
  how.flags = static_cast<std::uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  ssh::OwnedFd opened(
      static_cast<int>(::syscall(SYS_openat2, folder, name.c_str(), &how, sizeof how)));
  // Kernels before 5.6 do not have it, and some containers do not let it through.
  if (!opened && (errno == ENOSYS || errno == EPERM)) return open_step_by_step(folder, name, flags);
  return opened;
}

OpenFolder::OpenFolder(const std::filesystem::path& path, std::filesystem::path shown)
    : shown_(std::move(shown)), fd_(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

/// The folder that a name is in, -1 if that is not there, and the last part of the name. It points
/// into the name.
OpenFolder::Spot OpenFolder::find(const std::string& name) const {
  const std::size_t slash = name.rfind('/');
  if (slash == name.npos) return {fd_.get(), name.c_str()};
  const std::string_view folder = std::string_view(name).substr(0, slash);
  if (!last_fd_ || folder != last_) {
    last_ = folder;
    last_fd_ = open_below(fd_.get(), last_, O_PATH | O_DIRECTORY);
  }
  return {last_fd_.get(), name.c_str() + slash + 1};
}

std::optional<struct stat> OpenFolder::look_at(const std::string& name) const {
  const Spot spot = find(name);
  struct stat status {};
  if (spot.folder < 0 || ::fstatat(spot.folder, spot.name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return std::nullopt;
  return status;
}

bool OpenFolder::may_read(const std::string& name) const {
  const Spot spot = find(name);
  return spot.folder >= 0 && ::faccessat(spot.folder, spot.name, R_OK, 0) == 0;
}

std::optional<std::string> OpenFolder::target_of(const std::string& link) const {
  constexpr std::size_t kLongest = 4096;
  const Spot spot = find(link);
  std::string target(kLongest, '\0');
  const ssize_t size =
      spot.folder < 0 ? -1 : ::readlinkat(spot.folder, spot.name, target.data(), target.size());
  if (size < 0) return std::nullopt;
  target.resize(static_cast<std::size_t>(size));
  return target;
}

ssh::OwnedFd OpenFolder::open_file(const std::string& name) const {
  return open_below(fd_.get(), name, O_RDONLY | O_NONBLOCK);
}

std::optional<std::vector<std::string>> OpenFolder::names_in(const std::string& folder) const {
  ssh::OwnedFd fd = open_below(fd_.get(), folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (!fd) return std::nullopt;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::fdopendir(fd.get()), ::closedir);
  if (opened == nullptr) return std::nullopt;
  fd.release();
  std::vector<std::string> names;
  for (errno = 0; const dirent* each = ::readdir(opened.get()); errno = 0) {
    std::string name = each->d_name;
    if (name == "." || name == "..") continue;
    if (each->d_type == DT_DIR) name += '/';
    names.push_back(std::move(name));
  }
  if (errno != 0) return std::nullopt;
  std::ranges::sort(names);
  return names;
}

}  // namespace dtool::tree_sync
