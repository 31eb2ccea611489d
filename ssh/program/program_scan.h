// SPDX-License-Identifier: MIT
// The key that a host shows to the user's `ssh` program, for `dtool trust` if only that program
// reaches the host.
#pragma once

#include "ssh/keys/host_key.h"
#include "ssh/program/masters.h"

namespace dtool::ssh {

/// Fills in the report's state and key, or why the host could not be asked. Throws HostError.
asio::awaitable<void> scan_over_program(Masters& masters, HostKey& report);

}  // namespace dtool::ssh
