// SPDX-License-Identifier: MIT
#include "ssh/program/master_protocol.h"

#include <algorithm>
#include <stdexcept>

namespace dtool::ssh::master_protocol {
namespace {

constexpr std::uint32_t kVersion = 4;
constexpr std::uint32_t kRequest = 0;
constexpr std::uint32_t kNoEscape = 0xffffffff;
/// A master's longest answer holds a sentence.
constexpr std::uint32_t kLongest = 65'536;

void add(std::string& bytes, std::uint32_t number) {
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>((number >> shift) & 0xff);
}

void add(std::string& bytes, std::string_view text) {
  add(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

std::string packet(const std::string& body) {
  std::string bytes;
  add(bytes, std::string_view(body));
  return bytes;
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number = (number << 8) | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

}  // namespace

std::string hello() {
  std::string body;
  add(body, static_cast<std::uint32_t>(MuxKind::hello));
  add(body, kVersion);
  return packet(body);
}

std::string request(MuxKind kind) {
  std::string body;
  add(body, static_cast<std::uint32_t>(kind));
  add(body, kRequest);
  return packet(body);
}

std::string new_session(std::string_view line) {
  std::string body;
  add(body, static_cast<std::uint32_t>(MuxKind::new_session));
  add(body, kRequest);
  add(body, std::string_view());             // reserved
  for (int i = 0; i < 4; ++i) add(body, 0);  // no terminal, X11, agent or subsystem
  add(body, kNoEscape);
  add(body, std::string_view());  // the terminal's kind
  add(body, line);
  return packet(body);
}

std::optional<Packet> take_packet(std::string& bytes) {
  if (bytes.size() < 4) return std::nullopt;
  const std::uint32_t size = number_at(bytes, 0);
  if (size < 4 || size > kLongest) throw std::invalid_argument("that is no ControlMaster");
  if (bytes.size() - 4 < size) return std::nullopt;
  const std::string body = bytes.substr(4, size);
  bytes.erase(0, 4 + std::size_t{size});
  Packet packet;
  packet.kind = static_cast<MuxKind>(number_at(body, 0));
  if (body.size() >= 8) packet.first = number_at(body, 4);
  if (body.size() >= 12) packet.second = number_at(body, 8);
  const bool has_text =
      packet.kind == MuxKind::failure || packet.kind == MuxKind::permission_denied;
  if (has_text && body.size() >= 12)
    packet.text = body.substr(12, std::min<std::size_t>(packet.second, body.size() - 12));
  return packet;
}

}  // namespace dtool::ssh::master_protocol
