// SPDX-License-Identifier: MIT
// A call reads a bounded amount, so that a peer that sends without end does not delay others.
#include "trainer/launch/line_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace dtool::trainer {
namespace {

constexpr std::size_t kPiece = 16384;
constexpr int kPieces = 16;

bool only_not_now(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

LineSocket::LineSocket(int descriptor, std::size_t longest)
    : descriptor_(descriptor), longest_(longest) {
  const int on = 1;
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
  fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

LineSocket::~LineSocket() {
  if (descriptor_ >= 0) close(descriptor_);
}

int LineSocket::release() {
  return std::exchange(descriptor_, -1);
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
  std::vector<std::string> lines;
  char buffer[kPiece];
  for (int i = 0; i < kPieces && !has_ended_; ++i) {
    const auto size = read(descriptor_, buffer, sizeof buffer);
    if (size < 0 && only_not_now(errno)) break;
    if (size <= 0) {
      has_ended_ = true;
    } else {
      const auto begin = incoming_.size();
      incoming_.append(buffer, static_cast<std::size_t>(size));
      take_lines(begin, lines);
    }
  }
  return lines;
}

/// The bytes before `begin` contain no line end.
void LineSocket::take_lines(std::size_t begin, std::vector<std::string>& lines) {
  std::size_t taken = 0;
  for (std::size_t end; (end = incoming_.find('\n', begin)) != std::string::npos;) {
    if (end - taken > longest_) break;
    lines.push_back(incoming_.substr(taken, end - taken));
    taken = begin = end + 1;
  }
  incoming_.erase(0, taken);
  if (incoming_.size() > longest_) has_ended_ = true;
}

}  // namespace dtool::trainer
