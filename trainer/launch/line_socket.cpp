// Whoever sends a megabyte without a line end is no friend, and is hung up on.
#include "trainer/launch/line_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace dtool::trainer {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;

bool only_not_now(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/// Both protocols, or IPv4 where the kernel has no IPv6.
int bind_to_all(std::uint16_t port) {
  const int on = 1;
  const int off = 0;
  int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (six >= 0) {
    setsockopt(six, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    if (bind(six, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return six;
    const int error = errno;
    close(six);
    errno = error;
    if (error == EADDRINUSE || error == EACCES) return -1;
  }
  const int four = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (four < 0) return -1;
  setsockopt(four, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (bind(four, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return four;
  const int error = errno;
  close(four);
  errno = error;
  return -1;
}

}  // namespace

LineSocket::LineSocket(int descriptor) : descriptor_(descriptor) {
  const int on = 1;
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
  fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

LineSocket::~LineSocket() {
  close(descriptor_);
}

void LineSocket::send(std::string_view line) {
  outgoing_.append(line).append("\n");
  flush();
}

void LineSocket::flush() {
  while (!has_ended_ && !outgoing_.empty()) {
    const auto sent = ::send(descriptor_, outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      // The end is told by `receive`, after what may still be there to read.
      if (!only_not_now(errno)) outgoing_.clear();
      return;
    }
    outgoing_.erase(0, static_cast<std::size_t>(sent));
  }
}

std::vector<std::string> LineSocket::receive() {
  flush();
  char buffer[4096];
  while (!has_ended_) {
    const auto size = read(descriptor_, buffer, sizeof buffer);
    if (size < 0 && only_not_now(errno)) break;
    if (size <= 0 || incoming_.size() > kLongestLine) {
      has_ended_ = true;
    } else {
      incoming_.append(buffer, static_cast<std::size_t>(size));
    }
  }
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end; (end = incoming_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(incoming_.substr(begin, end - begin));
  }
  incoming_.erase(0, begin);
  return lines;
}

void LineSocket::finish_sending() {
  flush();
  shutdown(descriptor_, SHUT_WR);
}

int listen_on(std::uint16_t port) {
  const int listener = bind_to_all(port);
  if (listener < 0 || listen(listener, SOMAXCONN) != 0) {
    const int error = errno;
    if (listener >= 0) close(listener);
    throw std::system_error(error, std::generic_category());
  }
  return listener;
}

}  // namespace dtool::trainer
