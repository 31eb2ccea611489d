// SPDX-License-Identifier: MIT
// A connection that an `ssh` process holds and shares over its control socket (ControlMaster): the
// user's own, or one that masters.cpp started.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "ssh/machine/files.h"
#include "ssh/machine/reactor.h"
#include "ssh/session/connection.h"

namespace dtool::ssh {

/// Whether other programs may run commands over the same connection.
enum class MasterIsShared { no, yes };

/// A ControlMaster's socket.
struct Master {
  std::string socket;  ///< path
  MasterIsShared is_shared = MasterIsShared::yes;
};

/// The process behind that socket, which must be this user's; nothing if it does not answer.
asio::awaitable<std::optional<pid_t>> find_master(Reactor& reactor, std::string socket);

/// How a master is told to end: at once, or with the last command that runs over it.
enum class MasterEnds { at_once, after_commands };

/// Tells the master to end, without waiting. Returns a descriptor on which the end of the
/// conversation comes; none if no process answers.
OwnedFd tell_to_end(const std::string& socket, MasterEnds when);

/// Commands over that connection, each in its own session. `in_use` is held while it lives.
std::unique_ptr<Connection> make_master_connection(Reactor& reactor, Master master, OwnedFd in_use);

}  // namespace dtool::ssh
