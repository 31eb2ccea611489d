// SPDX-License-Identifier: MIT
// A connection that an earlier command left with its keeper (keeper.h). Commands connect to the
// keeper over a Unix socket and pass their streams along, so that the bytes take no detour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/kept/kept_folder.h"
#include "ssh/machine/reactor.h"
#include "ssh/session/connection.h"

namespace dtool::ssh {

/// The most connections to one host that are kept, for commands that ran at the same time.
inline constexpr std::size_t kMostKept = 4;
/// The socket of the `slot`th connection whose key has that socket_name().
std::string kept_name(const std::string& socket_name, std::size_t slot);

/// The first byte of each message between a command and a keeper.
namespace keeper_protocol {
inline constexpr char kTake = 't';     ///< the key follows: may I have the connection?
inline constexpr char kYours = 'y';    ///< its key follows: the host has just answered and is still
                                       ///< known
inline constexpr char kRefused = 'n';  ///< taken, or lost
inline constexpr char kExecute = 'x';  ///< an Order, the line; with it output, error and input
inline constexpr char kExpire = 'p';   ///< the command that runs has taken too long
inline constexpr char kResult = 'r';   ///< a Result, the error, a NUL byte, the hint
inline constexpr char kGiveBack = 'g';  ///< the command is done with it. One that goes without this
                                        ///< was killed or interrupted, and what it had begun there
                                        ///< is to end with the connection
/// The question: which host is it? The answer is the text of a Description.
inline constexpr char kDescribe = 'd';
inline constexpr char kEnd = 'e';  ///< close it as soon as no command uses it

struct Order {
  std::int64_t timeout_ms = -1;  ///< -1: none
  ShellOutput shell_output = ShellOutput::hand_on;
};
struct Result {
  int exit_code = -1;
  Failure failure = Failure::none;
};

/// The bytes of a plain struct after the message's first byte.
template <typename Plain>
std::string pack(char kind, const Plain& value) {
  return kind + std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
/// Reads the struct and the rest of the message; false if the message is too short.
template <typename Plain>
bool unpack(std::string_view bytes, Plain& value, std::string_view& rest) {
  if (bytes.size() < 1 + sizeof value) return false;
  bytes.copy(reinterpret_cast<char*>(&value), sizeof value, 1);
  rest = bytes.substr(1 + sizeof value);
  return true;
}
}  // namespace keeper_protocol

/// A free kept connection with that key, whose host has just answered and is still known. It
/// belongs to this process alone until it is destroyed. Null if there is none; then a new
/// connection is opened, whatever the reason.
asio::awaitable<std::unique_ptr<Connection>> take_kept(Reactor& reactor, const KeptFolder& folder,
                                                       std::string key);

// Messages over a Unix socket that keeps them apart (SOCK_SEQPACKET), with descriptors: between
// dtool and its remote shell, and between a command and the keeper of a connection.

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
