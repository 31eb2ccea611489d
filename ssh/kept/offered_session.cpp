// SPDX-License-Identifier: MIT
#include "ssh/kept/offered_session.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <time.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "ssh/host_error.h"
#include "ssh/kept/kept_connection.h"

namespace dtool::ssh {
namespace {

/// A caller that connects and says nothing is not waited for any longer.
constexpr auto kFirstWords = std::chrono::seconds(2);
/// For one round trip to a host. After it the command connects by itself, so that a host that is
/// gone costs little more than without a keeper.
constexpr auto kSignOfLife = std::chrono::seconds(3);

/// Seconds that pass while the machine sleeps, too.
std::chrono::seconds now() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec);
}

}  // namespace

/// Exists while a command uses the session: only that command listens to the server meanwhile.
class OfferedSession::AtWork {
 public:
  explicit AtWork(OfferedSession& session) : session_(session) {
    ++session_.quiet_time_;
    session_.session_.connection->session().wake();
  }
  ~AtWork() {
    if (session_.is_over_) return;
    session_.tasks_.spawn(session_.listen_to_server(session_.quiet_time_));
  }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

 private:
  OfferedSession& session_;
};

OfferedSession::OfferedSession(Reactor& reactor, const KeptFolder& folder, KnownHosts& known_hosts,
                               KeptSession session, std::string name, OwnedFd listener,
                               std::chrono::seconds idle)
    : reactor_(reactor),
      folder_(folder),
      known_hosts_(known_hosts),
      session_(std::move(session)),
      name_(std::move(name)),
      inode_(folder.inode(name_)),
      listener_(std::move(listener)),
      door_(reactor, listener_.get()),
      tasks_(reactor),
      idle_(idle),
      idle_since_(now()) {}

asio::awaitable<void> OfferedSession::serve() {
  tasks_.spawn(open_door());
  tasks_.spawn(listen_to_server(quiet_time_));
  try {
    co_await tasks_.join();
  } catch (const HostError&) {
    // Told to end.
  }
  end();
}

asio::awaitable<void> OfferedSession::listen_to_server(std::size_t quiet_time) {
  Session& session = session_.connection->session();
  while (!is_over_ && quiet_time_ == quiet_time) {
    session.hear();
    if (!session.is_connected()) break;
    try {
      co_await session.wait(kNoDeadline);
    } catch (const HostError&) {  // silent for too long, or told to end
      break;
    }
  }
  if (quiet_time_ == quiet_time) end();
}

asio::awaitable<void> OfferedSession::open_door() {
  while (!is_over_) {
    OwnedFd caller(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!caller && (errno == EMFILE || errno == ENFILE)) {
      co_await reactor_.sleep(kFirstWords);
    } else if (!caller) {
      co_await door_.wait(Waiter::For::readable, kNoDeadline);
    } else if (is_own_user(caller.get())) {
      tasks_.spawn(converse(std::move(caller)));
    }
  }
}

asio::awaitable<void> OfferedSession::converse(OwnedFd caller) {
  const int fd = caller.get();
  callers_.insert(fd);
  bool has_it = false;
  bool is_given_back = false;
  Deadline deadline = after(kFirstWords);
  try {
    while (!is_over_) {
      std::optional<Message> message = co_await await_message(reactor_, fd, deadline);
      if (!message) break;
      const char kind = message->bytes.front();
      if (kind == keeper_protocol::kTake && !has_it) {
        has_it = co_await take(message->bytes.substr(1));
        std::string answer(1, keeper_protocol::kRefused);
        if (has_it) answer = keeper_protocol::kYours + session_.connection->host_key();
        send_message(fd, answer);
        deadline = kNoDeadline;
      } else if (kind == keeper_protocol::kExecute && has_it) {
        co_await execute(fd, std::move(*message));
      } else if (kind == keeper_protocol::kGiveBack && has_it) {
        is_given_back = true;
        break;
      } else if (kind == keeper_protocol::kDescribe) {
        describe(fd);
      } else if (kind == keeper_protocol::kEnd) {
        ends_when_free_ = true;
        if (!is_taken_) end();
      }
      if (!has_it && kind == keeper_protocol::kTake) break;
    }
  } catch (const HostError&) {
    // Told to end.
  }
  callers_.erase(fd);
  if (!has_it) co_return;
  release();
  if (!is_given_back) end();
}

asio::awaitable<bool> OfferedSession::take(std::string key) {
  SshConnection& connection = *session_.connection;
  if (is_taken_ || ends_when_free_ || key != session_.key) co_return false;
  bool is_known = connection.session().is_still_known(known_hosts_);
  for (Session* jump : session_.jumps) is_known = is_known && jump->is_still_known(known_hosts_);
  if (!is_known) {
    end();
    co_return false;
  }
  is_taken_ = true;
  bool is_alive = true;
  {
    const AtWork work(*this);
    try {
      const Deadline deadline = after(kSignOfLife);
      co_await connection.open_ahead(deadline);
    } catch (const HostError&) {
      is_alive = false;
    }
  }
  if (is_alive) co_return true;
  is_taken_ = false;
  end();
  co_return false;
}

/// A command whose caller is gone loses its connection, as when a dtool that has connected by
/// itself is gone.
asio::awaitable<void> OfferedSession::watch_caller(int caller, Waiter& waiter,
                                                   const bool& is_done) {
  while (!is_done) {
    Message message;
    const Received received = receive_message(caller, message);
    if (received == Received::message && message.bytes.front() == keeper_protocol::kExpire) {
      session_.connection->expire();
      continue;
    }
    if (received != Received::nothing) {
      session_.connection->session().cut();
      co_return;
    }
    co_await waiter.wait(Waiter::For::readable, kNoDeadline);
  }
}

asio::awaitable<void> OfferedSession::execute(int caller, Message order) {
  keeper_protocol::Order wanted;
  std::string_view line;
  if (!keeper_protocol::unpack(order.bytes, wanted, line) || order.fds.size() < 2) co_return;
  CommandStreams streams;
  streams.output_fd = order.fds[0].get();
  streams.error_fd = order.fds[1].get();
  if (order.fds.size() > 2) streams.input_fd = order.fds[2].get();
  streams.shell_output = wanted.shell_output;
  const Deadline deadline =
      wanted.timeout_ms < 0 ? kNoDeadline : after(std::chrono::milliseconds(wanted.timeout_ms));
  keeper_protocol::Result result;
  std::string text;
  {
    const AtWork work(*this);
    Waiter waiter(reactor_, caller);
    bool is_done = false;
    TaskGroup watch(reactor_);
    watch.spawn(watch_caller(caller, waiter, is_done));
    const std::string command(line);
    try {
      result.exit_code =
          co_await session_.connection->execute(command, std::move(streams), deadline);
    } catch (const HostError& error) {
      result.failure = error.failure();
      text = error.what() + std::string(1, '\0') + error.hint();
    }
    is_done = true;
    waiter.wake();
    co_await watch.join();
    order.fds.clear();  // the caller sees the end of its streams before the exit code
    // Before the session is listened to again: that may end it at once, and all callers with it.
    send_message(caller, keeper_protocol::pack(keeper_protocol::kResult, result) + text);
  }
  // As without a keeper: what went wrong on a connection is not tried on it again.
  if (result.failure != Failure::none) end();
}

void OfferedSession::describe(int caller) const {
  const Endpoint& endpoint = session_.endpoint;
  send_message(caller, fmt::format("{}\n{}\n{}\n{}\n{}", to_string(session_.host), endpoint.address,
                                   endpoint.user, endpoint.port, is_taken_ ? "taken" : "free"));
}

void OfferedSession::release() {
  is_taken_ = false;
  idle_since_ = now();
  session_.connection->close_unused();
  if (ends_when_free_) end();
}

/// Its coroutines end soon, and then it goes.
void OfferedSession::end() {
  if (std::exchange(is_over_, true)) return;
  {
    const OwnedFd lock = folder_.lock();
    if (lock && folder_.inode(name_) == inode_) folder_.remove(name_);
  }
  door_.wake();
  session_.connection->session().wake();
  for (const int caller : callers_) ::shutdown(caller, SHUT_RDWR);
}

void OfferedSession::look_at_time() {
  if (!is_taken_ && (ends_when_free_ || now() - idle_since_ >= idle_)) end();
}

void OfferedSession::look_at_socket() {
  if (folder_.inode(name_) != inode_) ends_when_free_ = true;
}

}  // namespace dtool::ssh
