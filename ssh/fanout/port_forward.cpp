// SPDX-License-Identifier: MIT
#include "ssh/fanout/port_forward.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "ssh/fanout/links.h"
#include "ssh/host_error.h"
#include "ssh/machine/process.h"
#include "ssh/session/exchange.h"

namespace dtool::ssh {
namespace {

constexpr auto kForChannel = std::chrono::seconds(30);
constexpr auto kAfterFault = std::chrono::milliseconds(200);

/// The first line of what `ssh` said into the file.
std::string first_line(int file) {
  std::array<char, 500> bytes;
  const ssize_t count = ::pread(file, bytes.data(), bytes.size(), 0);
  const std::string said(bytes.data(), count < 0 ? 0 : static_cast<std::size_t>(count));
  return said.substr(0, said.find_first_of("\r\n"));
}

class Forwarding {
 public:
  Forwarding(Host host, const ConnectOptions& options)
      : link_(std::move(host), options), is_connected_(link_.reactor().context()) {}

  SingleLink& link() { return link_; }
  asio::awaitable<void> serve(const std::vector<ForwardedPort>& ports, ForwardEvents& events);

 private:
  asio::awaitable<void> connect();
  asio::awaitable<void> listen_to_server(Session* session);
  asio::awaitable<void> accept(const ForwardedPort& port);
  asio::awaitable<void> carry(OwnedFd caller, const ForwardedPort& port);
  asio::awaitable<void> carry_by_session(OwnedFd caller, const ForwardedPort& port);
  asio::awaitable<void> carry_by_program(OwnedFd caller, const ForwardedPort& port);

  SingleLink link_;
  Reactor& reactor_ = link_.reactor();
  bool is_connecting_ = false;
  asio::steady_timer is_connected_;  ///< cancelled when connecting has ended
  Session* heard_ = nullptr;         ///< the session that listen_to_server() has
  ForwardEvents* events_ = nullptr;
  std::optional<TaskGroup> tasks_;
};

asio::awaitable<void> Forwarding::connect() {
  while (is_connecting_) {
    is_connected_.expires_at(kNoDeadline);
    co_await reactor_.wait_for(is_connected_);
  }
  is_connecting_ = true;
  std::exception_ptr failure;
  try {
    co_await link_.connect();
  } catch (...) {  // whatever it is, the others must go on
    failure = std::current_exception();
  }
  is_connecting_ = false;
  is_connected_.cancel();
  if (failure) std::rethrow_exception(failure);
  Session* session = link_.session();
  if (session != nullptr && session != heard_) {
    heard_ = session;
    session->watch_for_silence();
    tasks_->spawn(listen_to_server(session));
  }
}

/// A server asks an idle client for a sign of life, and one that vanishes is to be noticed.
asio::awaitable<void> Forwarding::listen_to_server(Session* session) {
  try {
    while (session->is_connected()) {
      session->hear();
      co_await session->wait(kNoDeadline);
    }
  } catch (const HostError&) {
    // The next connection is made over a new session.
  }
}

asio::awaitable<void> Forwarding::serve(const std::vector<ForwardedPort>& ports,
                                        ForwardEvents& events) {
  events_ = &events;
  tasks_.emplace(reactor_);
  std::exception_ptr failure;
  try {
    co_await connect();
    events.on_reached();
    for (const ForwardedPort& port : ports) tasks_->spawn(accept(port));
  } catch (...) {  // whatever it is, the tasks must end first
    failure = std::current_exception();
  }
  if (failure) reactor_.abandon();
  try {
    co_await tasks_->join();
  } catch (const HostError&) {
    // A signal ended them.
  }
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<void> Forwarding::accept(const ForwardedPort& port) {
  Waiter waiter(reactor_, port.listener);
  for (;;) {
    OwnedFd caller(::accept4(port.listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (caller) {
      tasks_->spawn(carry(std::move(caller), port));
    } else if (errno == EAGAIN) {
      co_await waiter.wait(Waiter::For::readable, kNoDeadline);
    } else {  // no descriptor or no memory is free, or the caller has gone
      co_await reactor_.sleep(kAfterFault);
    }
  }
}

asio::awaitable<void> Forwarding::carry(OwnedFd caller, const ForwardedPort& port) {
  try {
    co_await connect();
    if (link_.is_over_program()) {
      co_await carry_by_program(std::move(caller), port);
    } else {
      co_await carry_by_session(std::move(caller), port);
    }
  } catch (const HostError& error) {
    if (!reactor_.abandoned()) events_->on_failure(error.what(), error.hint());
  }
}

asio::awaitable<void> Forwarding::carry_by_session(OwnedFd caller, const ForwardedPort& port) {
  const OwnedFd output = copy_of(caller);
  CommandStreams streams;
  streams.input_fd = caller.get();
  streams.output_fd = output.get();
  Session& session = *link_.session();
  Exchange exchange(reactor_, session, std::move(streams), EndsWith::end_of_output, kNoDeadline);
  const std::string who = to_string(link_.host());
  const Deadline deadline = after(kForChannel);
  co_await open_forward(session, exchange, who, port.address, port.port, deadline);
  events_->on_connection();
  co_await exchange.run();
}

asio::awaitable<void> Forwarding::carry_by_program(OwnedFd caller, const ForwardedPort& port) {
  const OwnedFd said = memory_file("");
  Process::Program program;
  program.arguments = link_.masters().forward_words(link_.host(), port.address, port.port);
  program.terminal = Process::Terminal::none;
  Process process(reactor_, program, {caller.get(), caller.get(), said.get()});
  const int exit_code = co_await process.wait(kNoDeadline);
  if (exit_code == 0) {
    events_->on_connection();
    co_return;
  }
  throw HostError(Failure::unreachable, to_string(link_.host()) + " cannot reach " + port.address +
                                            " port " + std::to_string(port.port) + ": " +
                                            first_line(said.get()));
}

}  // namespace

std::optional<HostResult> forward_ports(Host host, const ConnectOptions& options,
                                        const std::vector<ForwardedPort>& ports,
                                        ForwardEvents& events) {
  Forwarding forwarding(std::move(host), options);
  HostResult result;
  result = forwarding.link().finish(forwarding.serve(ports, events), result);
  if (forwarding.link().interrupted()) return std::nullopt;
  return result;
}

}  // namespace dtool::ssh
