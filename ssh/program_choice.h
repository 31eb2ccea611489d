// Whether a host is reached through libssh or through the user's `ssh` program.
#pragma once

#include "ssh/client_config.h"
#include "ssh/host_error.h"

namespace dtool::ssh {

/// How a host is reached; it needs `ssh` where one of its jump hosts does.
Endpoint resolve_way(const ClientConfig& config, const Host& host);

/// Whether a ControlMaster of the user's may be open to that host: there is a socket at a path that
/// ControlPath could stand for. `ssh` knows more.
bool may_have_master(const Endpoint& endpoint);

/// The failure of a host that needs `ssh` where it is not to be used.
HostError needs_program(const Endpoint& endpoint);

/// A log-in that was refused, with a hint at what `ssh` can do besides.
HostError with_hint_at_program(const HostError& refused);

}  // namespace dtool::ssh
