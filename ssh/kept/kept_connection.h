// A connection that an earlier command left with its keeper (keeper.h): commands go to it over a
// Unix socket, and their streams along, so that no byte passes through one process more than
// needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ssh/connection.h"
#include "ssh/kept/kept_folder.h"

namespace dtool::ssh {

/// At most so many connections to one host are kept, for commands that ran at once.
inline constexpr std::size_t kMostKept = 4;
/// The socket of the `slot`th connection whose key has that socket_name().
std::string kept_name(const std::string& socket_name, std::size_t slot);

/// What a command and a keeper say to each other: the first byte of each message.
namespace keeper_protocol {
inline constexpr char kTake = 't';      ///< and the key: may I have it?
inline constexpr char kYours = 'y';     ///< and its key: the host has just answered, is still known
inline constexpr char kRefused = 'n';   ///< taken, or lost
inline constexpr char kExecute = 'x';   ///< an Order, the line; with it output, error and input
inline constexpr char kResult = 'r';    ///< a Result, the error, a NUL byte, the hint
inline constexpr char kDescribe = 'd';  ///< which host is it? The answer is a Description's text
inline constexpr char kEnd = 'e';       ///< close it, when no command has it any more

struct Order {
  std::int64_t timeout_ms = -1;  ///< -1: none
  ShellOutput shell_output = ShellOutput::hand_on;
};
struct Result {
  int exit_code = -1;
  Failure failure = Failure::none;
};

/// Bytes of a plain struct behind the byte that says what they are.
template <typename Plain>
std::string pack(char kind, const Plain& value) {
  return kind + std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
/// The struct, and what stands behind it; false if the message is too short.
template <typename Plain>
bool unpack(std::string_view bytes, Plain& value, std::string_view& rest) {
  if (bytes.size() < 1 + sizeof value) return false;
  bytes.copy(reinterpret_cast<char*>(&value), sizeof value, 1);
  rest = bytes.substr(1 + sizeof value);
  return true;
}
}  // namespace keeper_protocol

/// A kept connection with that key which is free, whose host has just answered and is still known;
/// it is this process's alone until it is destroyed. Null if there is none: whatever the reason,
/// a new connection is the answer.
asio::awaitable<std::unique_ptr<Connection>> take_kept(Reactor& reactor, const KeptFolder& folder,
                                                       std::string key);

}  // namespace dtool::ssh
