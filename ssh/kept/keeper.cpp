// SPDX-License-Identifier: MIT
#include "ssh/kept/keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <list>
#include <optional>
#include <unordered_set>
#include <utility>

#include "ssh/kept/connection_key.h"
#include "ssh/kept/keeper_process.h"
#include "ssh/kept/kept_connection.h"
#include "ssh/kept/kept_folder.h"
#include "ssh/machine/process.h"

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

/// Names are taken under the lock. Beyond kMostKept the session is closed.
void Keeper::offer(std::vector<KeptSession> sessions) {
  const OwnedFd lock = folder_.lock();
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

}  // namespace dtool::ssh
