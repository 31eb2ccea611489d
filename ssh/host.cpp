// SPDX-License-Identifier: MIT
// Reads and writes the name of one host.
#include "ssh/host.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <stdexcept>
#include <unordered_set>

#include "ssh/wire/words.h"

namespace dtool::ssh {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view fault) {
  throw std::invalid_argument(fmt::format("'{}' is not a host: {}", text, fault));
}

bool is_ipv6(std::string_view name) {
  // A scope (`%eth0`) is the resolver's business; inet_pton knows none.
  const std::string_view::size_type percent = name.find('%');
  if (percent != std::string_view::npos && percent + 1 == name.size()) return false;
  in6_addr address;
  return inet_pton(AF_INET6, std::string(name.substr(0, percent)).c_str(), &address) == 1;
}

bool stands_in_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

void require_name(std::string_view name, std::string_view text) {
  if (name.empty()) refuse(text, "the host name is empty");
  if (name.front() == '-') refuse(text, "a host name does not begin with '-'");
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '[' || c == ']') refuse(text, fmt::format("'{}' has no partner", c));
    if (c == ' ' || c == ';')
      refuse(text,
             fmt::format("a host name does not hold '{}'\nhint: hosts are joined by commas", c));
    if (c == '/')
      refuse(text, "a host name does not hold '/'\nhint: a file of hosts goes after --hostfile");
    if (stands_in_a_name(c)) continue;
    std::size_t end = i + 1;  // the whole character ends there (UTF-8)
    while (end < name.size() && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) ++end;
    const std::string_view character = name.substr(i, end - i);
    const bool is_typographic = character.starts_with("\xe2\x80");  // dashes, quotation marks
    refuse(text,
           fmt::format("a host name does not hold '{}'{}", character,
                       is_typographic ? "\nhint: that is a typographic quotation mark or dash: "
                                        "type the plain one"
                                      : ""));
  }
}

void require_user(std::string_view user, std::string_view text) {
  if (user.empty()) refuse(text, "the user before '@' is empty");
  if (user.front() == '-') refuse(text, "a user name does not begin with '-'");
  for (const char c : user) {
    const bool control = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (control || std::string_view(":/'\"`;!&^<>|(){}[],*?").find(c) != std::string_view::npos) {
      refuse(text, fmt::format("a user name does not hold '{}'", c));
    }
  }
}

std::uint16_t require_port(std::string_view digits, std::string_view text) {
  const auto port = host::parse_port(digits);
  if (!port) refuse(text, fmt::format("port '{}' is not a number from 1 to 65535", digits));
  return *port;
}

// Reads `[v6::addr]` or `[v6::addr]:port`.
void read_bracketed(std::string_view place, std::string_view text, Host& host) {
  const std::string_view::size_type end = place.find(']');
  if (end == std::string_view::npos) refuse(text, "'[' has no partner");
  const std::string_view address = place.substr(1, end - 1);
  if (!is_ipv6(address)) refuse(text, fmt::format("'{}' is no IPv6 address", address));
  host.name = address;
  const std::string_view rest = place.substr(end + 1);
  if (rest.empty()) return;
  if (rest.front() != ':') refuse(text, fmt::format("'{}' follows the address", rest));
  host.port = require_port(rest.substr(1), text);
}

}  // namespace

Host parse_host(std::string_view text) {
  Host host;
  if (text == "local") {
    host.name = text;
    host.is_local = true;
    return host;
  }
  std::string_view place = text;
  // The last one, as ssh does: a user may be named `ann@example.org`.
  if (const std::string_view::size_type at = text.rfind('@'); at != std::string_view::npos) {
    require_user(text.substr(0, at), text);
    host.user = text.substr(0, at);
    place = text.substr(at + 1);
  }
  const std::string_view::size_type colon = place.find(':');
  if (place.starts_with('[')) {
    read_bracketed(place, text, host);
    return host;
  }
  if (colon != place.rfind(':')) {  // several colons: an address without brackets
    if (!is_ipv6(place)) refuse(text, fmt::format("'{}' is no IPv6 address", place));
    host.name = place;
    return host;
  }
  require_name(place.substr(0, colon), text);
  host.name = place.substr(0, colon);
  if (colon != std::string_view::npos) host.port = require_port(place.substr(colon + 1), text);
  if (host.name == "local") {
    throw std::invalid_argument(
        fmt::format("'{}': 'local' is this machine without SSH and takes no user or port\n"
                    "hint: 'localhost' is this machine over SSH",
                    text));
  }
  return host;
}

std::string to_string(const Host& host) {
  std::string text = host.user.empty() ? "" : host.user + "@";
  if (host.port == 0) return text + host.name;
  const bool is_address = host.name.find(':') != std::string::npos;
  return fmt::format("{}{}:{}", text, is_address ? "[" + host.name + "]" : host.name, host.port);
}

std::string mark_of(Host host) {
  constexpr std::uint16_t kSshPort = 22;
  if (host.port == kSshPort) host.port = 0;
  return to_string(host);
}

void require_distinct(const std::vector<Host>& hosts) {
  std::unordered_set<std::string> seen;
  for (const Host& host : hosts) {
    if (!seen.insert(mark_of(host)).second) {
      throw std::invalid_argument(fmt::format("host '{}' is named twice", to_string(host)));
    }
  }
}

}  // namespace dtool::ssh
