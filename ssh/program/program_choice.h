// SPDX-License-Identifier: MIT
// Whether a host is reached through libssh or through the user's `ssh` program.
#pragma once

#include <memory>
#include <optional>

#include "ssh/config/client_config.h"
#include "ssh/host_error.h"
#include "ssh/keys/known_hosts.h"
#include "ssh/program/masters.h"
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

/// A connection over ssh to a host with a known configuration. Throws HostError.
asio::awaitable<std::unique_ptr<Connection>> connect_over_program(Connector& connector,
                                                                  Masters& masters, Host host,
                                                                  Endpoint endpoint);

/// Whether the user may have an open ControlMaster to that host: a socket exists at a path that
/// matches ControlPath. Only `ssh` knows for sure.
bool may_have_master(const Endpoint& endpoint);

/// A refused login, with a hint at what `ssh` could do in addition.
HostError with_hint_at_program(const HostError& refused);

}  // namespace dtool::ssh
