// SPDX-License-Identifier: MIT
#include "ssh/session/connector.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include "ssh/host_error.h"

namespace dtool::ssh {

namespace {

/// Spread by half, so that many hosts do not come back together.
std::chrono::milliseconds pause_before(int next) {
  static std::minstd_rand random{std::random_device{}()};
  std::uniform_real_distribution<double> spread(0.5, 1.5);
  const auto middle = static_cast<double>(usual_pause_before(next).count());
  return std::chrono::milliseconds(static_cast<int>(middle * spread(random)));
}

/// RFC 4254 §5.1 gives "administratively prohibited" the number 1, and libssh writes numbers.
bool is_forbidden(std::string_view error) {
  return error.find(" error (1) ") != error.npos;
}

/// The server's words in libssh's `Channel opening failure: channel 43 error (2) WORDS`.
std::string words_of_refusal(const std::string& error) {
  constexpr std::string_view kBefore = " error (";
  const std::size_t end = error.find(") ", std::min(error.find(kBefore), error.size()));
  return end == error.npos ? error : error.substr(end + 2);
}

std::string chain_of(const std::vector<std::string>& jumps) {
  return fmt::format("{}", fmt::join(jumps, ","));
}

/// One forwarded connection, from open channel to its end. Owns what it carries between.
asio::awaitable<void> carry(std::unique_ptr<Exchange> exchange, OwnedFd input, OwnedFd output) {
  try {
    co_await exchange->run();
  } catch (const HostError&) {
    // The session on the other end of the socket sees its connection close, and tells.
  }
  input.reset();
  output.reset();
}

}  // namespace

asio::awaitable<void> open_forward(Session& session, Exchange& exchange, std::string who,
                                   std::string address, std::uint16_t port, Deadline deadline) {
  ssh_channel channel = exchange.channel().handle();
  std::function<int()> open = [channel, &address, port] {
    return ssh_channel_open_forward(channel, address.c_str(), port, "127.0.0.1", 0);
  };
  int rc = SSH_ERROR;
  try {
    rc = co_await session.repeat(open, SSH_AGAIN, deadline);
  } catch (const HostError& error) {
    if (error.failure() != Failure::timed_out) throw;
    throw HostError(Failure::connect_timed_out, who + " does not answer",
                    "--connect_timeout sets how long dtool waits");
  }
  if (rc == SSH_OK) co_return;
  if (is_forbidden(session.last_error())) {
    throw HostError(Failure::unreachable,
                    fmt::format("{} forbids connections to {} port {}", who, address, port),
                    "its sshd_config has AllowTcpForwarding no, or a PermitOpen without this "
                    "place");
  }
  throw HostError(Failure::unreachable, fmt::format("{} cannot reach {} port {}: {}", who, address,
                                                    port, words_of_refusal(session.last_error())));
}

std::chrono::milliseconds usual_pause_before(int next) {
  return std::chrono::milliseconds(100) * (1 << std::min(next - 2, 5));
}

Connector::Connector(Reactor& reactor, const ConnectOptions& options)
    : reactor_(reactor),
      connect_timeout_(options.connect_timeout),
      forced_connect_timeout_(options.forced_connect_timeout),
      tries_(options.tries),
      config_(ClientConfig::read(options.config_file, options.settings)) {}

Deadline Connector::connect_deadline(const Endpoint& endpoint) const {
  const auto configured = endpoint.connect_timeout.value_or(connect_timeout_);
  return after(forced_connect_timeout_.value_or(configured));
}

asio::awaitable<std::unique_ptr<Session>> Connector::log_in(Host host) {
  const Endpoint endpoint = config_.resolve(host);
  co_return co_await log_in(endpoint, endpoint.jumps);
}

std::string Connector::address_of(const Host& host) const {
  return config_.resolve(host).address;
}

std::vector<Session*> Connector::jump_sessions(const std::vector<std::string>& jumps) const {
  std::vector<Session*> sessions;
  for (auto end = jumps.begin(); end != jumps.end();) {
    ++end;
    const auto known = jumps_.find(chain_of({jumps.begin(), end}));
    if (known != jumps_.end() && known->second->session != nullptr)
      sessions.push_back(known->second->session.get());
  }
  return sessions;
}

asio::awaitable<std::unique_ptr<Session>> Connector::greet(Host host) {
  const Endpoint endpoint = config_.resolve(host);
  co_return co_await greet(endpoint, endpoint.jumps);
}

asio::awaitable<std::unique_ptr<Session>> Connector::log_in(Endpoint endpoint,
                                                            std::vector<std::string> jumps) {
  std::unique_ptr<Session> session = co_await greet(endpoint, jumps);
  session->require_known_host(known_hosts_);
  const Deadline deadline = connect_deadline(endpoint);
  try {
    co_await session->authenticate(identities_, deadline);
  } catch (const HostError& error) {
    if (error.failure() != Failure::timed_out) throw;
    throw HostError(Failure::connect_timed_out, "logging in did not end in time",
                    "--connect_timeout sets how long dtool waits");
  }
  if (!jumps.empty()) session->watch_for_silence();
  co_return session;
}

asio::awaitable<std::unique_ptr<Session>> Connector::greet(Endpoint endpoint,
                                                           std::vector<std::string> jumps) {
  if (!endpoint.needs_program.empty()) throw needs_program(endpoint);
  for (int attempt = 1; attempt <= tries_; ++attempt) {
    if (attempt > 1) co_await reactor_.sleep(pause_before(attempt));
    const Deadline deadline = connect_deadline(endpoint);
    OwnedFd socket = co_await open_socket(endpoint, jumps, deadline);
    const Greeting greeting = co_await await_greeting(reactor_, socket.get(), deadline);
    if (greeting == Greeting::dropped) continue;
    auto session = std::make_unique<Session>(reactor_, endpoint, std::move(socket), known_hosts_);
    co_await session->exchange_keys(deadline);
    co_return session;
  }
  throw HostError(Failure::unreachable,
                  fmt::format("{} port {} closed the connection before its greeting, {} times",
                              endpoint.address, endpoint.port, tries_),
                  "the server may be at its MaxStartups, or refuse this address");
}

asio::awaitable<OwnedFd> Connector::open_socket(Endpoint endpoint, std::vector<std::string> jumps,
                                                Deadline deadline) {
  if (!jumps.empty()) co_return co_await open_through(jumps, endpoint, deadline);
  co_return co_await connect_tcp(reactor_, endpoint.address, endpoint.port, deadline,
                                 endpoint.address_family);
}

asio::awaitable<OwnedFd> Connector::open_through(std::vector<std::string> jumps, Endpoint target,
                                                 Deadline deadline) {
  Jump* jump = co_await reach_jump(jumps);
  Session& session = *jump->session;
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) != 0) {
    throw HostError(Failure::unreachable,
                    fmt::format("cannot make a socket: {}", std::strerror(errno)));
  }
  OwnedFd near(sockets[0]);
  OwnedFd far(sockets[1]);
  OwnedFd far_output = copy_of(far);
  CommandStreams streams;
  streams.input_fd = far.get();
  streams.output_fd = far_output.get();
  auto exchange = std::make_unique<Exchange>(reactor_, session, std::move(streams),
                                             EndsWith::end_of_output, kNoDeadline);
  const std::string who = "jump host " + jumps.back();
  co_await open_forward(session, *exchange, who, target.address, target.port, deadline);
  asio::co_spawn(reactor_.context(),
                 carry(std::move(exchange), std::move(far), std::move(far_output)), asio::detached);
  co_return near;
}

asio::awaitable<Connector::Jump*> Connector::reach_jump(std::vector<std::string> jumps) {
  std::unique_ptr<Jump>& known = jumps_[chain_of(jumps)];
  const bool is_lost = known != nullptr && known->is_lost();
  if (is_lost) lost_jumps_.push_back(std::move(known));
  const bool is_new = known == nullptr;
  if (is_new) known = std::make_unique<Jump>(reactor_);
  Jump& jump = *known;
  if (is_lost) jump.is_again = true;
  if (is_new) co_await log_in_to_jump(jump, jumps);
  while (jump.session == nullptr && !jump.error) {
    jump.is_decided.expires_at(kNoDeadline);
    co_await reactor_.wait_for(jump.is_decided);
  }
  if (jump.error) std::rethrow_exception(jump.error);
  co_return &jump;
}

/// Decides the jump: a session, or the error that everyone behind it gets.
asio::awaitable<void> Connector::log_in_to_jump(Jump& jump, std::vector<std::string> jumps) {
  std::vector<std::string> before(jumps.begin(), jumps.end() - 1);
  try {
    const Endpoint endpoint = config_.resolve_jump(parse_host(jumps.back()));
    jump.session = co_await log_in(endpoint, before);
  } catch (const HostError& error) {
    std::string hint = error.hint();  // about the jump host, not about the hosts behind it
    const std::size_t at = hint.find(kHostsInHint);
    if (at != hint.npos) hint.replace(at, kHostsInHint.size(), jumps.back());
    jump.error = std::make_exception_ptr(
        HostError(error.failure(), fmt::format("jump host {}: {}", jumps.back(), error.what()),
                  std::move(hint)));
  } catch (...) {
    jump.error = std::current_exception();
  }
  jump.is_decided.cancel();
}

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
            fmt::format("what follows ':' is the port here; a number of processes goes into "
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
