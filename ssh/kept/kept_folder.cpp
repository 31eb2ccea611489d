// SPDX-License-Identifier: MIT
#include "ssh/kept/kept_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "ssh/machine/encodings.h"
#include "ssh/machine/files.h"
#include "ssh/quote.h"

namespace dtool::ssh {

namespace {

constexpr const char* kLock = "lock";
/// Who asks a keeper that is stopped is to wait for it, not to be turned away as if none were
/// there.
constexpr int kWaiting = SOMAXCONN;

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
  Connecting connecting{Reached::unfit, connect_unix(way_to(name), SOCK_SEQPACKET)};
  if (!connecting.socket) {
    if (errno == ENOENT) connecting.reached = Reached::missing;
    if (errno == ECONNREFUSED) connecting.reached = Reached::refused;
  } else if (is_own_user(connecting.socket.get())) {
    connecting.reached = Reached::yes;
  }
  if (connecting.reached != Reached::yes) connecting.socket.reset();
  return connecting;
}

OwnedFd KeptFolder::listen(const std::string& name) const {
  const auto address = unix_address(way_to(name));
  if (!address) return {};
  OwnedFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const mode_t before = ::umask(0177);
  const bool is_bound =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0;
  ::umask(before);
  if (!is_bound || ::listen(socket.get(), kWaiting) != 0) return {};
  return socket;
}

OwnedFd KeptFolder::lock() const {
  OwnedFd file(::openat(folder_.get(), kLock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  while (file && ::flock(file.get(), LOCK_EX) != 0)
    if (errno != EINTR) return {};
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

namespace {

/// Another number here keeps versions of dtool apart that would not understand each other.
constexpr int kProtocol = 2;

/// One line with the value quoted, so that no value can look like the next line.
void add(std::string& key, std::string_view name, std::string_view value) {
  key += fmt::format("{} {}\n", name, quote(value));
}

void add_file(std::string& key, std::string_view name, const std::filesystem::path& file) {
  add(key, name, fmt::format("{} {}", file.string(), stamp_of(status_of(file))));
}

void add_endpoint(std::string& key, const Endpoint& endpoint) {
  add(key, "address", endpoint.address);
  add(key, "port", std::to_string(endpoint.port));
  add(key, "user", endpoint.user);
  add(key, "family", std::to_string(static_cast<int>(endpoint.address_family)));
  for (const auto& [keyword, value] : endpoint.encryption) add(key, keyword, value);
  add(key, "key_name", endpoint.key_name);
  add(key, "key_port", std::to_string(endpoint.key_port));
  for (const std::filesystem::path& file : endpoint.known_hosts_files)
    add(key, "known_hosts", file.string());
  add(key, "only_named", endpoint.only_named_identities ? "yes" : "no");
  if (!endpoint.identity_agent.empty()) add_file(key, "agent", endpoint.identity_agent);
  for (const std::filesystem::path& file : endpoint.certificate_files)
    add_file(key, "certificate", file);
  std::vector<std::filesystem::path> files = endpoint.identity_files;
  if (files.empty()) files = usual_identities();
  for (const std::filesystem::path& file : files) {
    add_file(key, "identity", file);
    add_file(key, "certificate", file.string() + "-cert.pub");
  }
}

}  // namespace

std::string connection_key(const ClientConfig& config, const Host& host) {
  static const std::string boot = boot_id();
  std::error_code ignored;
  static const std::string network =
      std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
  std::string key = fmt::format("dtool connection {}\n", kProtocol);
  add(key, "boot", boot);
  add(key, "network", network);
  add(key, "home", home_folder().string());
  const Endpoint endpoint = config.resolve(host);
  add_endpoint(key, endpoint);
  for (const std::string& jump : endpoint.jumps) {
    add(key, "jump", jump);
    add_endpoint(key, config.resolve_jump(parse_host(jump)));
  }
  return key;
}

std::string socket_prefix() {
  static const std::string boot = boot_id();
  return boot.substr(0, 8) + "-";
}

std::string socket_name(std::string_view key) {
  Sha256 digest;
  digest.add(key);
  return socket_prefix() + digest.hex().substr(0, 16);
}

}  // namespace dtool::ssh
