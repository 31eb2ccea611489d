// SPDX-License-Identifier: MIT
// The real Remote: one thread, one io_context, one libssh session a host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ssh/connect_options.h"
#include "ssh/remote.h"

namespace dtool::ssh {

/// Opens no connection yet. Throws std::invalid_argument if the SSH configuration cannot be read or
/// the trace folder cannot be written, and std::runtime_error if the limit of open files is too low
/// for so many hosts.
std::unique_ptr<Remote> make_fleet(std::vector<Host> hosts, const ConnectOptions& options);

/// The internal command that rsync runs as its remote shell. It passes its standard streams and
/// `words` to the dtool that started rsync, waits, and returns the remote exit code (255 if there
/// is no such dtool).
int remote_shell(const std::vector<std::string>& words);

}  // namespace dtool::ssh
