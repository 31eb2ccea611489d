// SPDX-License-Identifier: MIT
// A host as the user names it, and how that name is read. All other files of this folder use this
// form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// One machine. Parts that are left out here (user, port, real address) come from the SSH client
/// configuration.
struct Host {
  std::string name;  ///< host name or address without brackets: `gpu01`, `10.0.0.1`, `fe80::1`
  std::string user;  ///< empty: the configuration's, else the name of the user who runs dtool
  std::uint16_t port = 0;  ///< 0: the configuration's, else 22
  bool is_local = false;   ///< `local`: this machine, reached without SSH

  bool operator==(const Host&) const = default;
};

/// Reads `[user@]host[:port]`, `[user@][v6::addr]:port`, a bare IPv6 address, or `local`. Throws
/// std::invalid_argument with a sentence that quotes `text` and names its fault.
Host parse_host(std::string_view text);

/// The shortest text that parse_host reads back to the same host.
std::string to_string(const Host& host);

/// Throws std::invalid_argument naming the first host that stands in `hosts` twice. Two names are
/// the same host if name, user and port are equal.
void require_distinct(const std::vector<Host>& hosts);

}  // namespace dtool::ssh
