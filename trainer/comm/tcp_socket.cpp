// Sockets are non-blocking; each wait is a poll.
#include "trainer/comm/tcp_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

namespace dtool::trainer {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(error)));
}

void await(int descriptor, short events, Deadline deadline, const char* what) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waited{descriptor, events, 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) return;
    if (ready == 0) fail(what, ETIMEDOUT);
    if (errno != EINTR) fail(what, errno);
  }
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList numeric(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) throw std::runtime_error(fmt::format("'{}': {}", host, gai_strerror(error)));
  return {found, freeaddrinfo};
}

int open_socket(int family) {
  const int made = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) fail("cannot make a socket", errno);
  return made;
}

/// A small message must not wait for the answer to the one before.
void send_at_once(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

TcpSocket TcpSocket::listen_on(const std::string& address) {
  const auto found = numeric(address, 0);
  TcpSocket made(open_socket(found->ai_family));
  if (bind(made.descriptor_, found->ai_addr, found->ai_addrlen) != 0 ||
      listen(made.descriptor_, SOMAXCONN) != 0) {
    fail(fmt::format("cannot listen on {}", address), errno);
  }
  return made;
}

TcpSocket TcpSocket::connect_to(const Endpoint& endpoint, Deadline deadline) {
  const auto found = numeric(endpoint.host, endpoint.port);
  TcpSocket made(open_socket(found->ai_family));
  const auto what = fmt::format("cannot connect to {}", to_string(endpoint));
  if (connect(made.descriptor_, found->ai_addr, found->ai_addrlen) != 0) {
    if (errno != EINPROGRESS) fail(what, errno);
    await(made.descriptor_, POLLOUT, deadline, what.c_str());
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(made.descriptor_, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) fail(what, error);
  }
  send_at_once(made.descriptor_);
  return made;
}

TcpSocket::~TcpSocket() {
  if (descriptor_ >= 0) close(descriptor_);
}

TcpSocket::TcpSocket(TcpSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

TcpSocket& TcpSocket::operator=(TcpSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

TcpSocket TcpSocket::accept(Deadline deadline) const {
  for (;;) {
    await(descriptor_, POLLIN, deadline, "no connection came");
    const int accepted = accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted >= 0) {
      send_at_once(accepted);
      return TcpSocket(accepted);
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      fail("cannot accept a connection", errno);
    }
  }
}

std::uint16_t TcpSocket::port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    fail("no address", errno);
  }
  // The port lies at the same place in IPv4's and IPv6's address.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

void TcpSocket::send_all(const void* data, std::size_t size, Deadline deadline) const {
  const auto* next = static_cast<const std::byte*>(data);
  while (size > 0) {
    const auto sent = send(descriptor_, next, size, MSG_NOSIGNAL);
    if (sent > 0) {
      next += sent;
      size -= static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      await(descriptor_, POLLOUT, deadline, "cannot send");
    } else if (errno != EINTR) {
      fail("cannot send", errno);
    }
  }
}

void TcpSocket::receive_all(void* data, std::size_t size, Deadline deadline) const {
  auto* next = static_cast<std::byte*>(data);
  while (size > 0) {
    const auto received = recv(descriptor_, next, size, 0);
    if (received > 0) {
      next += received;
      size -= static_cast<std::size_t>(received);
    } else if (received == 0) {
      throw std::runtime_error("the other side closed the connection");
    } else if (errno == EAGAIN) {
      await(descriptor_, POLLIN, deadline, "nothing received");
    } else if (errno != EINTR) {
      fail("cannot receive", errno);
    }
  }
}

}  // namespace dtool::trainer
