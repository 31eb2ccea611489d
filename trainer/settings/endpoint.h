// SPDX-License-Identifier: MIT
// An address and a port.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dtool::trainer {

struct Endpoint {
  std::string host;  ///< a name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
};

/// Reads `IP:PORT`, `name:PORT` or `[v6::address]:PORT`. Throws UsageError.
Endpoint parse_endpoint(std::string_view text);

/// The text that `parse_endpoint` reads.
std::string to_string(const Endpoint& endpoint);

}  // namespace dtool::trainer
