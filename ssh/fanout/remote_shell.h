// SPDX-License-Identifier: MIT
// Runs a program on this machine whose remote shell is one of dtool's own connections. rsync starts
// `dtool remote_shell HOST COMMAND…`. That process hands its standard streams to the dtool that
// started rsync, over an inherited socket, and waits for the exit code.
#pragma once

#include <functional>
#include <string_view>

#include "ssh/session/connection.h"

namespace dtool::ssh {

/// Runs `program` to its end. If it starts a remote shell, that runs on `connection`. The output of
/// both goes to `on_output`. Throws HostError.
asio::awaitable<int> run_local_program(Reactor& reactor, Connection& connection,
                                       LocalProgram program,
                                       std::function<void(Stream, std::string_view)> on_output,
                                       Deadline deadline);

}  // namespace dtool::ssh
