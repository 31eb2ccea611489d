// SPDX-License-Identifier: MIT
#include "ssh/session/ssh_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <utility>

#include "ssh/host_error.h"
#include "ssh/script.h"
#include "ssh/scripts.h"
#include "ssh/session/exchange.h"

namespace dtool::ssh {
SshConnection::SshConnection(Reactor& reactor, std::unique_ptr<Session> session)
    : reactor_(reactor), session_(std::move(session)) {}

void SshConnection::abandon() {
  session_->shut_down();
}

void SshConnection::expire() {
  if (running_ == nullptr) return abandon();
  running_->expire();
}

asio::awaitable<std::unique_ptr<Channel>> SshConnection::open(Deadline deadline) {
  const Deadline patience = std::min(deadline, after(kForEndOfLastSession));
  std::chrono::milliseconds pause{10};
  for (;;) {
    auto channel = std::make_unique<Channel>(*session_);
    std::function<int()> open = [&channel] { return ssh_channel_open_session(channel->handle()); };
    const int rc = co_await session_->repeat(open, SSH_AGAIN, deadline);
    if (rc == SSH_OK) co_return channel;
    if (!session_->is_connected()) throw connection_lost(*session_);
    if (Clock::now() + pause >= patience) throw no_session(session_->last_error());
    co_await reactor_.sleep(pause);
    pause *= 2;
  }
}

asio::awaitable<void> SshConnection::open_ahead(Deadline deadline) {
  ahead_ = co_await open(deadline);
}

asio::awaitable<void> SshConnection::start(ssh_channel channel, std::string line,
                                           Deadline deadline) {
  std::function<int()> request = [channel, &line] {
    return ssh_channel_request_exec(channel, line.c_str());
  };
  const int rc = co_await session_->repeat(request, SSH_AGAIN, deadline);
  if (rc == SSH_OK) co_return;
  if (!session_->is_connected()) throw connection_lost(*session_);
  throw HostError(Failure::connection_lost,
                  fmt::format("the server starts no command: {}", session_->last_error()),
                  "is the host at a limit of processes (ulimit -u, a pids cgroup)? A shell that "
                  "is still open there can end some");
}

/// TERM, a second of grace, KILL: by signals through the server, and by a script beside the
/// command.
asio::awaitable<void> SshConnection::end_command(Exchange& exchange) {
  const Deadline deadline = after(std::chrono::seconds(5));
  const Deadline to_begin = after(std::chrono::seconds(1));
  exchange.signal("TERM");
  try {
    const Command command = bash(scripts::kEnd_commands);
    CommandStreams streams;
    streams.input = command.input;
    auto channel = co_await open(to_begin);
    Exchange script(reactor_, *session_, std::move(channel), std::move(streams),
                    EndsWith::exit_code, deadline);
    co_await start(script.channel().handle(), command.line, deadline);
    co_await script.run();
    co_await exchange.take_last_words(deadline);
  } catch (const HostError&) {
    // A server that allows one command at a time, or does not answer any more: the signals remain.
  }
  exchange.signal("KILL");
}

asio::awaitable<int> SshConnection::execute(std::string line, CommandStreams streams,
                                            Deadline deadline) {
  if (streams.shell_output == ShellOutput::leave_out) line = behind_mark(line);
  if (ahead_ == nullptr) co_await open_ahead(deadline);
  Exchange exchange(reactor_, *session_, std::move(ahead_), std::move(streams), EndsWith::exit_code,
                    deadline);
  bool has_started = false;
  bool has_timed_out = false;
  running_ = &exchange;
  std::exception_ptr failure;
  try {
    co_await start(exchange.channel().handle(), line, deadline);
    has_started = true;
    co_await exchange.run();
  } catch (const HostError& error) {
    has_timed_out = has_started && error.failure() == Failure::timed_out;
    if (!has_timed_out) failure = std::current_exception();
  } catch (...) {  // whatever it is, the exchange must be forgotten first
    failure = std::current_exception();
  }
  running_ = nullptr;
  if (failure) std::rethrow_exception(failure);
  if (has_timed_out) {
    co_await end_command(exchange);
    throw command_timed_out();
  }
  const int exit_code = exchange.channel().exit_code();
  if (exit_code < 0 && !session_->is_connected()) throw connection_lost(*session_);
  if (exit_code < 0) {
    throw HostError(Failure::connection_lost,
                    "the host closed the command without telling its exit code");
  }
  co_return exit_code;
}

}  // namespace dtool::ssh
