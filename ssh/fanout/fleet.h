// SPDX-License-Identifier: MIT
// The real Remote: one thread, one io_context, one libssh session a host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ssh/connect_options.h"
#include "ssh/remote.h"
#include "ssh/session/host_key.h"

namespace dtool::ssh {

/// Opens no connection yet. Throws std::invalid_argument if the SSH configuration cannot be read or
/// the trace folder cannot be written, and std::runtime_error if the limit of open files is too low
/// for so many hosts.
std::unique_ptr<Remote> make_fleet(std::vector<Host> hosts, const ConnectOptions& options);

/// The internal command that rsync runs as its remote shell. It passes its standard streams and
/// `words` to the dtool that started rsync, waits, and returns the remote exit code (255 if there
/// is no such dtool).
int remote_shell(const std::vector<std::string>& words);

// `dtool trust`: asks hosts for their keys, through libssh or the user's `ssh` program, and adds
// them to known_hosts after the user said yes (host_key_scan.cpp).

/// Asks every host for its key without logging in; results in the hosts' order. If several hosts
/// would get the same name in known_hosts but show different keys, they are doubtful.
std::vector<HostKey> scan_host_keys(const std::vector<Host>& hosts, const ConnectOptions& options);

/// Appends the lines of unknown keys to their known_hosts files, writing each file once. A missing
/// file is made 0600, its folder 0700. Throws std::runtime_error if a file cannot be written.
void add_to_known_hosts(const std::vector<HostKey>& keys);

}  // namespace dtool::ssh
