// SPDX-License-Identifier: MIT
#include "ssh/kept/keeper_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

extern char** environ;  // NOLINT: POSIX's name

namespace dtool::ssh {
namespace {

/// The process's arguments and, right behind them, its environment as it was given; what /proc
/// shows of both is this memory. Empty if the kernel does not tell.
struct StartMemory {
  char* begin = nullptr;
  std::size_t size = 0;
};

StartMemory start_memory() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == text.npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  std::vector<std::string> field(3);  // so that numbers are those of proc(5)
  for (std::string each; fields >> each;) field.push_back(each);
  if (field.size() < 52) return {};
  const std::uintptr_t arguments = std::stoull(field[48]);
  const std::uintptr_t environment = std::stoull(field[50]);
  const std::uintptr_t end = std::stoull(field[51]);
  if (arguments == 0 || environment < arguments || end < environment) return {};
  return {reinterpret_cast<char*>(arguments), end - arguments};
}

/// DTOOL_RUN_ID would make the keeper a process of a run, and the environment may hold secrets.
void rename_process(const std::string& title) {
  static char* nothing[] = {nullptr};
  environ = nothing;
  const StartMemory memory = start_memory();
  if (memory.size < 2) return;
  std::memset(memory.begin, 0, memory.size);
  std::memcpy(memory.begin, title.data(), std::min(title.size(), memory.size - 1));
}

/// Whether one end of a UNIX socket has no name, by `ask`: getsockname or getpeername. Sockets with
/// names are servers', and none of ours has one.
bool is_unnamed(int fd, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  return ask(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         address.sun_family == AF_UNIX && size == sizeof(sa_family_t);
}

/// Both its ends were made by the process that forked this one: it carries a connection through a
/// jump host.
bool is_pair_of(pid_t parent, int fd) {
  ucred maker{};
  socklen_t size = sizeof maker;
  return is_unnamed(fd, ::getsockname) && is_unnamed(fd, ::getpeername) &&
         ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &size) == 0 && maker.pid == parent;
}

/// Descriptors from before dtool began came through exec, so they are not close-on-exec; all that
/// dtool opens are.
bool is_ours(int fd, const std::unordered_set<int>& kept, pid_t parent) {
  const int flags = ::fcntl(fd, F_GETFD);
  if (flags == -1 || (flags & FD_CLOEXEC) == 0) return false;
  struct stat status {};
  if (::fstat(fd, &status) != 0) return false;
  if (S_ISSOCK(status.st_mode)) return kept.contains(fd) || is_pair_of(parent, fd);
  return S_ISFIFO(status.st_mode) || (status.st_mode & S_IFMT) == 0;  // 0: epoll, eventfd, timerfd
}

void close_others(const std::unordered_set<int>& kept, pid_t parent) {
  std::vector<int> fds;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored))
    fds.push_back(std::atoi(entry.path().filename().c_str()));
  for (const int fd : fds) {
    if (fd > STDERR_FILENO && !kept.contains(fd) && !is_ours(fd, kept, parent)) ::close(fd);
  }
}

void raise_limit(std::size_t sessions) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 64 + 10 * sessions);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  const rlimit none{0, 0};  // a core would hold the sessions' keys
  ::setrlimit(RLIMIT_CORE, &none);
}

}  // namespace

void let_go_of_parent(const std::string& title, const std::unordered_set<int>& kept, pid_t parent) {
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  close_others(kept, parent);
  if (::chdir("/") != 0) ::_exit(1);
  ::umask(077);
  raise_limit(kept.size());
  rename_process(title);
}

}  // namespace dtool::ssh
