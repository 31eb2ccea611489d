// SPDX-License-Identifier: MIT
// The protocol of an OpenSSH ControlMaster's control socket: version 4 of PROTOCOL.mux in OpenSSH's
// sources. Only texts; master.cpp sends and receives them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtool::ssh::master_protocol {

enum class MuxKind : std::uint32_t {
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

/// The first message of each conversation, on both sides.
std::string hello();
/// A request that has only a kind: alive_check, terminate or stop_listening.
std::string request(MuxKind kind);
/// A session without a terminal that runs `line`. Three descriptors follow, each with one byte.
std::string new_session(std::string_view line);

struct Packet {
  MuxKind kind = MuxKind::hello;
  std::uint32_t first = 0;   ///< first number: the request's, or the session's
  std::uint32_t second = 0;  ///< second number, if any: exit code, process id
  std::string text = {};     ///< the reason in failure and permission_denied
};

/// Takes one whole packet off the front; nothing if it is incomplete. Throws std::invalid_argument
/// if the bytes are not a packet.
std::optional<Packet> take_packet(std::string& bytes);

}  // namespace dtool::ssh::master_protocol
