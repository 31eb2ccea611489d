// SPDX-License-Identifier: MIT
// `dtool trust`: asks hosts for their keys, through libssh or the user's `ssh` program, and adds
// them to known_hosts after the user said yes.
#pragma once

#include <vector>

#include "ssh/connect_options.h"
#include "ssh/host.h"
#include "ssh/session/host_key.h"

namespace dtool::ssh {

/// Asks every host for its key without logging in; results in the hosts' order. If several hosts
/// would get the same name in known_hosts but show different keys, they are doubtful.
std::vector<HostKey> scan_host_keys(const std::vector<Host>& hosts, const ConnectOptions& options);

/// Appends the lines of unknown keys to their known_hosts files, writing each file once. A missing
/// file is made 0600, its folder 0700. Throws std::runtime_error if a file cannot be written.
void add_to_known_hosts(const std::vector<HostKey>& keys);

}  // namespace dtool::ssh
