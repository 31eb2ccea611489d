// SPDX-License-Identifier: MIT
#include "ssh/kept/keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
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
#include <list>
#include <optional>
#include <sstream>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ssh/kept/kept_connection.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/machine/process.h"

extern char** environ;  // NOLINT: POSIX's name

namespace dtool::ssh {

namespace {

constexpr auto kTick = std::chrono::seconds(1);
constexpr int kTicksBetweenLooks = 5;

class Keeper {
 public:
  Keeper(Reactor& reactor, KeptFolder folder, std::chrono::seconds idle)
      : reactor_(reactor),
        folder_(std::move(folder)),
        idle_(idle),
        signals_(reactor.context(), SIGTERM, SIGINT, SIGHUP),
        timer_(reactor.context()) {}

  void offer(std::vector<KeptSession> sessions);
  void run();

 private:
  asio::awaitable<void> serve(OfferedSession& session);
  asio::awaitable<void> tick();
  void end_all();

  Reactor& reactor_;
  KeptFolder folder_;
  std::chrono::seconds idle_;
  KnownHosts known_hosts_;
  asio::signal_set signals_;
  asio::steady_timer timer_;
  std::list<OfferedSession> sessions_;
};

/// Names are taken under the lock. Beyond kMostKept, or without the lock, the session is closed.
void Keeper::offer(std::vector<KeptSession> sessions) {
  const OwnedFd lock = folder_.lock();
  if (!lock) return;
  for (KeptSession& session : sessions) {
    const std::string socket = socket_name(session.key);
    for (std::size_t slot = 0; slot < kMostKept && session.connection != nullptr; ++slot) {
      const std::string name = kept_name(socket, slot);
      const Reached reached = folder_.connect(name).reached;
      if (reached == Reached::refused) folder_.remove(name);
      if (reached != Reached::refused && reached != Reached::missing) continue;
      OwnedFd listener = folder_.listen(name);
      if (!listener) continue;
      sessions_.emplace_back(reactor_, folder_, known_hosts_, std::move(session), name,
                             std::move(listener), idle_);
      break;
    }
  }
}

void Keeper::run() {
  signals_.async_wait([this](boost::system::error_code error, int) {
    if (!error) end_all();
  });
  for (OfferedSession& session : sessions_)
    asio::co_spawn(reactor_.context(), serve(session), asio::detached);
  asio::co_spawn(reactor_.context(), tick(), asio::detached);
  reactor_.context().restart();
  if (!sessions_.empty()) reactor_.context().run();
}

asio::awaitable<void> Keeper::serve(OfferedSession& session) {
  co_await session.serve();
  sessions_.remove_if([&session](const OfferedSession& each) { return &each == &session; });
  if (sessions_.empty()) reactor_.context().stop();
}

asio::awaitable<void> Keeper::tick() {
  for (int ticks = 0;; ++ticks) {
    timer_.expires_after(kTick);
    co_await reactor_.wait_for(timer_);
    for (OfferedSession& session : sessions_) {
      if (ticks % kTicksBetweenLooks == 0) session.look_at_socket();
      session.look_at_time();
    }
  }
}

void Keeper::end_all() {
  for (OfferedSession& session : sessions_) session.end();
  reactor_.abandon();
}

/// In the new process. Closes `is_offered` once all sockets are there.
void keep(Reactor& reactor, KeptFolder folder, std::vector<KeptSession>& sessions,
          std::chrono::seconds idle, OwnedFd is_offered) {
  Keeper keeper(reactor, std::move(folder), idle);
  keeper.offer(std::move(sessions));
  is_offered.reset();
  keeper.run();
}

/// The next command may come at once, and is to find the sockets.
void await_offer(Pipe is_offered) {
  constexpr int kLongestMs = 2000;
  is_offered.writer.reset();
  pollfd end{is_offered.reader.get(), POLLIN, 0};
  ::poll(&end, 1, kLongestMs);
}

}  // namespace

bool start_keeper(Reactor& reactor, std::vector<KeptSession>& sessions, std::chrono::seconds idle) {
  std::optional<KeptFolder> folder = KeptFolder::open(KeptFolder::Make::yes);
  std::unordered_set<int> kept = {folder->fd()};
  for (const KeptSession& each : sessions) {
    for (const int fd : each.connection->session().fds()) kept.insert(fd);
    for (const Session* jump : each.jumps)
      for (const int fd : jump->fds()) kept.insert(fd);
  }
  Pipe is_offered = make_pipe(NonBlocking::reader);
  reactor.context().notify_fork(asio::io_context::fork_prepare);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) {
    reactor.context().notify_fork(asio::io_context::fork_parent);
    await_offer(std::move(is_offered));
    return pid > 0;
  }
  try {
    reactor.context().notify_fork(asio::io_context::fork_child);
    let_go_of_parent(fmt::format("dtool keep_connections {}", folder->path().string()), kept,
                     parent);
    is_offered.reader.reset();
    keep(reactor, std::move(*folder), sessions, idle, std::move(is_offered.writer));
  } catch (...) {  // no caller can be told; commands that connect will find the sockets dead
  }
  ::_exit(0);
}

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
