// SPDX-License-Identifier: MIT
#include "ssh/program/master_protocol.h"

#include <stdexcept>

#include "ssh/machine/encodings.h"

namespace dtool::ssh::master_protocol {
namespace {

constexpr std::uint32_t kVersion = 4;
constexpr std::uint32_t kRequest = 0;
constexpr std::uint32_t kNoEscape = 0xffffffff;
/// A master's longest answer holds a sentence.
constexpr std::uint32_t kLongest = 65'536;

}  // namespace

std::string hello() {
  return ssh_string(ssh_number(static_cast<std::uint32_t>(MuxKind::hello)) + ssh_number(kVersion));
}

std::string request(MuxKind kind) {
  return ssh_string(ssh_number(static_cast<std::uint32_t>(kind)) + ssh_number(kRequest));
}

std::string new_session(std::string_view line) {
  std::string body = ssh_number(static_cast<std::uint32_t>(MuxKind::new_session));
  body += ssh_number(kRequest);
  body += ssh_string("");                             // reserved
  for (int i = 0; i < 4; ++i) body += ssh_number(0);  // no terminal, X11, agent or subsystem
  body += ssh_number(kNoEscape);
  body += ssh_string("");  // the terminal's kind
  body += ssh_string(line);
  return ssh_string(body);
}

std::optional<Packet> take_packet(std::string& bytes) {
  std::string_view rest = bytes;
  const auto size = take_number(rest);
  if (!size) return std::nullopt;
  if (*size < 4 || *size > kLongest) throw std::invalid_argument("that is no ControlMaster");
  if (rest.size() < *size) return std::nullopt;
  rest = rest.substr(0, *size);
  Packet packet;
  packet.kind = static_cast<MuxKind>(take_number(rest).value_or(0));
  packet.first = take_number(rest).value_or(0);
  packet.second = take_number(rest).value_or(0);
  if (packet.kind == MuxKind::failure || packet.kind == MuxKind::permission_denied)
    packet.text = rest.substr(0, packet.second);
  bytes.erase(0, 4 + std::size_t{*size});
  return packet;
}

}  // namespace dtool::ssh::master_protocol
