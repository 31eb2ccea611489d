// What is said over the control socket of an OpenSSH ControlMaster: version 4 of PROTOCOL.mux in
// OpenSSH's sources. Texts only; master.cpp sends and receives them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtool::ssh::master_protocol {

enum class Kind : std::uint32_t {
  hello = 0x00000001,
  new_session = 0x10000002,
  alive_check = 0x10000004,
  terminate = 0x10000005,
  stop_listening = 0x10000009,
  ok = 0x80000001,
  permission_denied = 0x80000002,
  failure = 0x80000003,
  exit_message = 0x80000004,
  alive = 0x80000005,
  session_opened = 0x80000006,
};

/// Each conversation begins with it, on both sides.
std::string hello();
/// A request without more than its kind: alive_check, terminate or stop_listening.
std::string request(Kind kind);
/// A session without a terminal that runs `line`; three descriptors follow, each with one byte.
std::string new_session(std::string_view line);

struct Packet {
  Kind kind = Kind::hello;
  std::uint32_t first = 0;   ///< of the numbers behind it: the request's, or the session's
  std::uint32_t second = 0;  ///< where there is one: exit code, process id
  std::string text = {};     ///< of failure and permission_denied: why
};

/// Takes one whole packet off the front; nothing if more must come first. Throws
/// std::invalid_argument if it is no packet.
std::optional<Packet> take_packet(std::string& bytes);

}  // namespace dtool::ssh::master_protocol
