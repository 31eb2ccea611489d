// SPDX-License-Identifier: MIT
// Sockets are non-blocking; each wait is a poll().
#include "trainer/comm/tcp_socket.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
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

/// A small message must not wait for the answer to the one before.
void send_at_once(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

TcpSocket::TcpSocket(int descriptor) : descriptor_(descriptor) {
  send_at_once(descriptor_);
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
