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

/// How a host is reached; it needs `ssh` where one of its jump hosts does.
Endpoint resolve_way(const ClientConfig& config, const Host& host);

/// The line by which only an authority that signs host keys is known for the host or one of its
/// jump hosts: libssh cannot ask for the certificates.
std::optional<KeyVerdict> find_authority(const ClientConfig& config, KnownHosts& known_hosts,
                                         const Endpoint& endpoint);

/// The failure of a host that showed no key with a certificate of that authority's.
HostError not_certified(const KeyVerdict& authority);

/// A connection over ssh to a host whose configuration is known. Throws HostError.
asio::awaitable<std::unique_ptr<Connection>> connect_over_program(Connector& connector,
                                                                  Masters& masters, Host host,
                                                                  Endpoint endpoint);

/// Whether a ControlMaster of the user's may be open to that host: there is a socket at a path that
/// ControlPath could stand for. `ssh` knows more.
bool may_have_master(const Endpoint& endpoint);

/// The failure of a host that needs `ssh` where it is not to be used.
HostError needs_program(const Endpoint& endpoint);

/// A log-in that was refused, with a hint at what `ssh` can do besides.
HostError with_hint_at_program(const HostError& refused);

}  // namespace dtool::ssh
