// SPDX-License-Identifier: MIT
// Messages over a Unix socket that keeps them apart (SOCK_SEQPACKET), with descriptors: between
// dtool and its remote shell, and between a command and the keeper of a connection.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/machine/reactor.h"

namespace dtool::ssh {

/// At least one byte, and at most four descriptors; the received ones are close-on-exec.
struct Message {
  std::string bytes;
  std::vector<OwnedFd> fds;
};

/// `nothing`: no message has come yet. `end`: none will come.
enum class Received { message, nothing, end };

/// Does not wait.
Received receive_message(int socket, Message& message);

/// Waits for a message. Nothing if the other side has gone, or at the deadline.
asio::awaitable<std::optional<Message>> await_message(Reactor& reactor, int socket,
                                                      Deadline deadline);

/// Sends copies of the descriptors; the caller's stay open. False if the other side has gone, or
/// does not accept a message of that size.
bool send_message(int socket, std::string_view bytes, std::initializer_list<int> fds = {});

}  // namespace dtool::ssh
