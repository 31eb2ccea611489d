// SPDX-License-Identifier: MIT
#include "ssh/session/tcp.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "ssh/host_error.h"

namespace dtool::ssh {
namespace {

/// A look-up that runs on a thread of its own: getaddrinfo blocks, and a slow name server must hold
/// up neither the other hosts nor this one past its deadline. Shared, since the thread may outlive
/// the wait.
struct Lookup {
  Lookup() : done(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Lookup() {
    if (addresses != nullptr) ::freeaddrinfo(addresses);
  }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  void resolve(int flags) {
    addrinfo hints{};
    hints.ai_family = family == AddressFamily::inet    ? AF_INET
                      : family == AddressFamily::inet6 ? AF_INET6
                                                       : AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    error = ::getaddrinfo(address.c_str(), port.c_str(), &hints, &addresses);
  }

  std::string address;
  std::string port;
  AddressFamily family = AddressFamily::any;
  OwnedFd done;
  std::atomic<bool> finished = false;
  int error = 0;
  addrinfo* addresses = nullptr;
};

asio::awaitable<std::shared_ptr<Lookup>> look_up(Reactor& reactor, std::string address,
                                                 std::uint16_t port, AddressFamily family,
                                                 Deadline deadline) {
  auto lookup = std::make_shared<Lookup>();
  lookup->family = family;
  lookup->address = address;
  lookup->port = std::to_string(port);
  lookup->resolve(AI_NUMERICHOST | AI_NUMERICSERV);
  if (lookup->error == 0) co_return lookup;

  std::thread([lookup] {
    lookup->resolve(AI_NUMERICSERV | AI_ADDRCONFIG);
    lookup->finished = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(lookup->done.get(), &one, sizeof one);
  }).detach();
  Waiter waiter(reactor, lookup->done.get());
  while (!lookup->finished) {
    const auto outcome = co_await waiter.wait(Waiter::For::readable, deadline);
    if (outcome == Waiter::Outcome::deadline_passed && !lookup->finished) {
      throw HostError(Failure::connect_timed_out,
                      fmt::format("the name {} was not resolved in time", address));
    }
  }
  if (lookup->error != 0) {
    throw HostError(Failure::unreachable,
                    fmt::format("cannot resolve {}: {}", address, ::gai_strerror(lookup->error)),
                    "check the spelling, or give the host an address by HostName in ~/.ssh/config");
  }
  co_return lookup;
}

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

/// A peer that vanished without a word is noticed after 15 + 3 × 5 s, or 30 s after what it leaves
/// unanswered.
void watch_peer(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

int pending_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

/// 0 when connected, else an errno value; ETIMEDOUT when the deadline passed.
asio::awaitable<int> try_connect(Reactor& reactor, const addrinfo* address, int fd,
                                 Deadline deadline) {
  if (::connect(fd, address->ai_addr, address->ai_addrlen) == 0) co_return 0;
  if (errno != EINPROGRESS) co_return errno;
  Waiter waiter(reactor, fd);
  const auto outcome = co_await waiter.wait(Waiter::For::writable, deadline);
  co_return outcome == Waiter::Outcome::deadline_passed ? ETIMEDOUT : pending_error(fd);
}

bool peer_has_ended(int fd) {
  pollfd state{fd, POLLRDHUP, 0};
  return ::poll(&state, 1, 0) > 0;
}

}  // namespace

HostError connect_error(std::uint16_t port, int error) {
  // mpirun and horovodrun take `h1:4` for four processes.
  constexpr std::uint16_t kMostProcesses = 64;
  if (port != 22 && port <= kMostProcesses) {
    return {error == ETIMEDOUT ? Failure::connect_timed_out : Failure::unreachable,
            fmt::format("cannot connect to port {}: {}", port, std::strerror(error)),
            fmt::format("what follows ':' is the port here; {0} processes a host are "
                        "--nproc_per_node {0}, or slots={0} in a hostfile",
                        port)};
  }
  if (error == ETIMEDOUT) {
    return {Failure::connect_timed_out, fmt::format("no answer from port {} in time", port),
            "is the host up and its SSH port open? --connect_timeout sets how long dtool waits"};
  }
  const std::string hint = error == ECONNREFUSED ? "is an SSH server running there, on this port?"
                           : error == EHOSTUNREACH || error == ENETUNREACH
                               ? "is the host up, and can this machine reach its network?"
                               : "";
  return {Failure::unreachable,
          fmt::format("cannot connect to port {}: {}", port, std::strerror(error)), hint};
}

asio::awaitable<OwnedFd> connect_tcp(Reactor& reactor, std::string address, std::uint16_t port,
                                     Deadline deadline, AddressFamily family) {
  const std::shared_ptr<Lookup> lookup = co_await look_up(reactor, address, port, family, deadline);
  auto left = 0;
  for (const addrinfo* each = lookup->addresses; each != nullptr; each = each->ai_next) ++left;
  int error = EADDRNOTAVAIL;
  for (const addrinfo* each = lookup->addresses; each != nullptr; each = each->ai_next, --left) {
    OwnedFd fd(::socket(each->ai_family, each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                        each->ai_protocol));
    if (!fd) {
      error = errno;
      continue;
    }
    watch_peer(fd.get());
    // Each address gets its share of the time that is left, so that a dead first one leaves room
    // for the next.
    const Deadline share = Clock::now() + (deadline - Clock::now()) / left;
    error = co_await try_connect(reactor, each, fd.get(), share);
    if (error == 0) co_return fd;
  }
  throw connect_error(port, error);
}

asio::awaitable<Greeting> await_greeting(Reactor& reactor, int fd, Deadline deadline) {
  Waiter waiter(reactor, fd);
  std::array<char, 256> bytes;
  std::size_t seen = 0;
  for (;;) {
    const ssize_t count = ::recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    if (count == 0) co_return Greeting::dropped;
    if (count < 0 && errno != EAGAIN) co_return Greeting::dropped;
    if (count > 0) {
      const std::string_view text(bytes.data(), static_cast<std::size_t>(count));
      // RFC 4253 §4.2: other lines may come before the greeting. OpenSSH beyond its MaxStartups
      // sends one and hangs up.
      if (text.starts_with("SSH-") || text.find("\nSSH-") != text.npos) co_return Greeting::came;
      if (text.size() == bytes.size()) co_return Greeting::came;  // a long banner: libssh reads on
      if (peer_has_ended(fd)) co_return Greeting::dropped;
      // Peeked bytes keep the socket readable; only new ones, or the end, change anything.
      if (text.size() == seen) co_await reactor.sleep(std::chrono::milliseconds(20));
      seen = text.size();
    }
    if (Clock::now() >= deadline) break;
    co_await waiter.wait(Waiter::For::readable, deadline);
  }
  throw HostError(Failure::connect_timed_out, "connected, but no SSH greeting came in time",
                  "is it an SSH server that listens on this port?");
}

}  // namespace dtool::ssh
