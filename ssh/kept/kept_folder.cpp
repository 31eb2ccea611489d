// SPDX-License-Identifier: MIT
#include "ssh/kept/kept_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "ssh/machine/home_folder.h"

namespace dtool::ssh {
namespace {

constexpr const char* kLock = "lock";
/// Who asks a keeper that is stopped is to wait for it, not to be turned away as if none were
/// there.
constexpr int kWaiting = SOMAXCONN;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

OwnedFd make_socket() {
  return OwnedFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

bool is_own_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

pid_t pid_behind(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

std::optional<KeptFolder> KeptFolder::open(Make make) {
  const std::filesystem::path path = home_folder() / ".dtool" / "connections";
  if (make == Make::yes) {
    ::mkdir(path.parent_path().c_str(), 0700);
    ::mkdir(path.c_str(), 0700);
  }
  OwnedFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder && errno == ENOENT && make == Make::no) return std::nullopt;
  struct stat status {};
  if (!folder || ::fstat(folder.get(), &status) != 0) {
    throw std::runtime_error(fmt::format("the folder of kept connections {} cannot be used: {}",
                                         path.string(), std::strerror(errno)));
  }
  if (status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    throw std::runtime_error(
        fmt::format("the folder of kept connections {} is not yours alone (mode {:o}, user {})\n"
                    "hint: remove it, or chmod 700 it",
                    path.string(), status.st_mode & 07777, status.st_uid));
  }
  return KeptFolder(std::move(folder), path);
}

/// A socket's address holds 107 characters, which a home folder may have by itself.
std::string KeptFolder::way_to(const std::string& name) const {
  return fmt::format("/proc/self/fd/{}/{}", folder_.get(), name);
}

KeptFolder::Connecting KeptFolder::connect(const std::string& name) const {
  Connecting connecting{Reached::unfit, make_socket()};
  const sockaddr_un address = address_of(way_to(name));
  const int fd = connecting.socket.get();
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ENOENT) connecting.reached = Reached::missing;
    if (errno == ECONNREFUSED) connecting.reached = Reached::refused;
  } else if (is_own_user(fd)) {
    connecting.reached = Reached::yes;
  }
  if (connecting.reached != Reached::yes) connecting.socket.reset();
  return connecting;
}

OwnedFd KeptFolder::listen(const std::string& name) const {
  OwnedFd socket = make_socket();
  const sockaddr_un address = address_of(way_to(name));
  const mode_t before = ::umask(0177);
  const bool is_bound =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::umask(before);
  if (!is_bound || ::listen(socket.get(), kWaiting) != 0) return {};
  return socket;
}

OwnedFd KeptFolder::lock() const {
  OwnedFd file(::openat(folder_.get(), kLock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return file;
}

ino_t KeptFolder::inode(const std::string& name) const {
  struct stat status {};
  const bool is_there = ::fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  return is_there && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

void KeptFolder::remove(const std::string& name) const {
  ::unlinkat(folder_.get(), name.c_str(), 0);
}

std::vector<std::string> KeptFolder::names() const {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(way_to("."), ignored)) {
    if (inode(entry.path().filename().string()) != 0)
      names.push_back(entry.path().filename().string());
  }
  return names;
}

}  // namespace dtool::ssh
