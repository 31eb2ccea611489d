// SPDX-License-Identifier: MIT
// Ports of one host as this machine's own, over one connection that is made again when it was lost.
// `dtool forward` uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/connect_options.h"
#include "ssh/host.h"
#include "ssh/remote.h"

namespace dtool::ssh {

struct ForwardedPort {
  int listener = -1;    ///< a socket that listens on this machine, non-blocking; the caller's
  std::string address;  ///< the address that the host connects to: its own, or one near it
  std::uint16_t port = 0;
};

/// What happens meanwhile.
struct ForwardEvents {
  virtual ~ForwardEvents() = default;
  /// The host is reached, at the start.
  virtual void on_reached() = 0;
  /// One connection could not be made, or ended with the connection to the host.
  virtual void on_failure(const std::string& error, const std::string& hint) = 0;
  /// A connection was made.
  virtual void on_connection() = 0;
};

/// Connects to `host`, which is not this machine, and passes on what comes to the ports until
/// SIGINT, SIGTERM or SIGHUP comes: then returns nothing. Else the result is why the host could not
/// be reached at the start.
std::optional<HostResult> forward_ports(Host host, const ConnectOptions& options,
                                        const std::vector<ForwardedPort>& ports,
                                        ForwardEvents& events);

}  // namespace dtool::ssh
