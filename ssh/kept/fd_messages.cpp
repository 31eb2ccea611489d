// SPDX-License-Identifier: MIT
#include "ssh/kept/fd_messages.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace dtool::ssh {
namespace {

constexpr std::size_t kMostFds = 4;

/// Room for the descriptors of one message.
union Ancillary {
  cmsghdr header;
  std::array<char, CMSG_SPACE(kMostFds * sizeof(int))> bytes;
};

void take_fds(msghdr& message, std::vector<OwnedFd>& fds) {
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return;
  std::array<int, kMostFds> numbers{};
  const std::size_t size = header->cmsg_len - CMSG_LEN(0);
  std::memcpy(numbers.data(), CMSG_DATA(header), std::min(size, sizeof numbers));
  for (std::size_t i = 0; i < size / sizeof(int); ++i) fds.emplace_back(numbers[i]);
}

}  // namespace

Received receive_message(int socket, Message& message) {
  const ssize_t size = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Received::nothing;
  if (size <= 0) return Received::end;
  message.bytes.resize(static_cast<std::size_t>(size));
  message.fds.clear();
  iovec data{message.bytes.data(), message.bytes.size()};
  Ancillary ancillary{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = ancillary.bytes.data();
  header.msg_controllen = ancillary.bytes.size();
  if (::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != size) return Received::end;
  take_fds(header, message.fds);
  return Received::message;
}

asio::awaitable<std::optional<Message>> await_message(Reactor& reactor, int socket,
                                                      Deadline deadline) {
  std::optional<Waiter> waiter;  // not needed for a message that has come already
  Message message;
  for (;;) {
    const Received received = receive_message(socket, message);
    if (received == Received::message) co_return std::optional<Message>(std::move(message));
    if (received == Received::end || Clock::now() >= deadline) co_return std::nullopt;
    if (!waiter) waiter.emplace(reactor, socket);
    co_await waiter->wait(Waiter::For::readable, deadline);
  }
}

bool send_message(int socket, std::string_view bytes, std::initializer_list<int> fds) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fds.size() > 0) {
    message.msg_control = ancillary.bytes.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), std::data(fds), fds.size() * sizeof(int));
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

}  // namespace dtool::ssh
