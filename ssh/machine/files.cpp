// SPDX-License-Identifier: MIT
// Reads a file by system calls: an ifstream opens a folder without an error and drops errno.
#include "ssh/machine/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace dtool::ssh {

std::string read_file(const std::filesystem::path& file) {
  const OwnedFd opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  auto text = opened ? host::read_to_end(opened.get(), std::string::npos) : std::nullopt;
  if (!text)
    throw std::system_error(errno, std::generic_category(), file.string() + ": cannot be read");
  return *std::move(text);
}

std::string boot_id() {
  try {
    const std::string text = read_file("/proc/sys/kernel/random/boot_id");
    return text.substr(0, text.find('\n'));
  } catch (const std::system_error&) {
    return {};
  }
}

std::filesystem::path home_folder() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return home;
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr ? "/" : entry->pw_dir;
}

std::filesystem::path from_home(std::string_view path) {
  if (path == "~") return home_folder();
  return path.starts_with("~/") ? home_folder() / path.substr(2) : std::filesystem::path(path);
}

std::optional<std::filesystem::path> below(const std::filesystem::path& path,
                                           const std::filesystem::path& folder) {
  std::filesystem::path rest = path.lexically_relative(folder);
  const bool is_outside = rest.empty() || *rest.begin() == "..";
  return is_outside ? std::nullopt : std::optional(std::move(rest));
}

struct stat status_of(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) status = {};
  return status;
}

std::string stamp_of(const struct stat& status) {
  return fmt::format("{}:{}:{}:{}.{}", status.st_dev, status.st_ino, status.st_size,
                     status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

namespace {

constexpr rlim_t kOfOurOwn = 64;
constexpr rlim_t kConnected = 2;
constexpr rlim_t kAtWork = 8;
// The open files for a host with a dtool-host that waits for requests.
constexpr rlim_t kWaiting = 6;

rlim_t most_wanted(std::size_t hosts, std::size_t width) {
  return kOfOurOwn + (kConnected + kWaiting) * hosts + kAtWork * std::min(width, hosts);
}

}  // namespace

/// A socket stays open for each host (behind a jump host also a pair of sockets), and hosts that
/// are being served have pipes.
std::size_t make_room_for_files(std::size_t hosts, std::size_t width) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return width;
  const rlim_t wanted = most_wanted(hosts, width);
  if (limit.rlim_cur >= wanted) return width;
  const rlim_t least = kOfOurOwn + kConnected * hosts;
  if (limit.rlim_max < least + kAtWork) {
    throw std::runtime_error(
        fmt::format("{} hosts need {} open files, and this machine allows {}\n"
                    "hint: raise the hard limit (ulimit -Hn as root, or nofile in "
                    "/etc/security/limits.conf), or name fewer hosts",
                    hosts, least + kAtWork, limit.rlim_max));
  }
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(width, (limit.rlim_cur - least) / kAtWork);
}

bool has_room_for_files(std::size_t hosts, std::size_t width) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= most_wanted(hosts, width);
}

TemporaryFolder::TemporaryFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "dtool-XXXXXX").native();
  if (::mkdtemp(path.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "cannot make a folder in " + path);
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void make_non_blocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

OwnedFd memory_file(std::string_view bytes) {
  OwnedFd file(::memfd_create("dtool", MFD_CLOEXEC));
  if (!file) return {};
  if (!host::write_to_end(file.get(), bytes)) return {};
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

std::optional<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return std::nullopt;
  }
  std::ranges::copy(path, std::begin(address.sun_path));
  return address;
}

OwnedFd connect_unix(const std::string& path, int type) {
  const auto address = unix_address(path);
  if (!address) return {};
  OwnedFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* at = reinterpret_cast<const sockaddr*>(&*address);
  if (socket && ::connect(socket.get(), at, sizeof *address) == 0) return socket;
  const int why = errno;
  socket = OwnedFd();
  errno = why;
  return {};
}

}  // namespace dtool::ssh
