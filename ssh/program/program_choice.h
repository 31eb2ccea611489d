// SPDX-License-Identifier: MIT
// Whether a host is reached through libssh or through the user's `ssh` program, and its connection
// in that way.
#pragma once

#include <memory>
#include <optional>

#include "ssh/config/client_config.h"
#include "ssh/connect_options.h"
#include "ssh/host_error.h"
#include "ssh/keys/known_hosts.h"
#include "ssh/program/masters.h"
#include "ssh/session/connection.h"
#include "ssh/session/connector.h"

namespace dtool::ssh {

/// How a host is reached; it needs `ssh` if one of its jump hosts does.
Endpoint resolve_way(const ClientConfig& config, const Host& host);

/// The known_hosts line by which the host or one of its jump hosts is known only through a
/// certificate authority: libssh cannot ask for certificates.
std::optional<KeyVerdict> find_authority(const ClientConfig& config, KnownHosts& known_hosts,
                                         const Endpoint& endpoint);

/// The failure of a host whose key has no certificate of that authority.
HostError not_certified(const KeyVerdict& authority);

/// Opens connections to hosts, each in the way that fits it.
class Dialer {
 public:
  /// Opens none yet. Throws std::invalid_argument if the SSH configuration cannot be read.
  Dialer(Reactor& reactor, const ConnectOptions& options)
      : reactor_(reactor),
        program_(options.program),
        connector_(reactor, options),
        masters_(reactor, options) {}

  Connector& connector() { return connector_; }
  const Connector& connector() const { return connector_; }
  Masters& masters() { return masters_; }
  const Masters& masters() const { return masters_; }

  /// The way to a host; empty if `ssh` alone reads the configuration. Throws HostError if the host
  /// needs `ssh`, which the options forbid.
  Endpoint way_to(const Host& host) const;
  /// Whether that way needs `ssh`, or the options want it.
  bool needs_ssh(const Endpoint& way) const;
  /// The same, or a certificate authority is known for the host.
  bool needs_ssh(const Endpoint& way, const std::optional<KeyVerdict>& authority) const {
    return needs_ssh(way) || (program_ == Program::automatic && authority);
  }

  /// A new connection that way. Throws HostError.
  asio::awaitable<std::unique_ptr<Connection>> connect(Host host, Endpoint way);

 private:
  Reactor& reactor_;
  Program program_;
  Connector connector_;
  Masters masters_;
};

}  // namespace dtool::ssh
