// SPDX-License-Identifier: MIT
// The connections that are kept for later commands, seen from outside: which ones exist, and how to
// end them. `dtool disconnect` uses it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "ssh/connect_options.h"
#include "ssh/host.h"

namespace dtool::ssh {

/// One that was told to end.
struct EndedConnection {
  Host host;               ///< its name when the connection was made
  std::string target;      ///< its address: `user@address:port`
  bool is_in_use = false;  ///< a running command uses it; the connection ends with that command
};

struct EndedConnections {
  std::vector<EndedConnection> ended;
  /// Pids of keepers and of `ssh` masters that did not answer within five seconds: what they keep
  /// is not known.
  std::vector<pid_t> silent;
};

/// Ends all kept connections of this user on this machine, or only those to `hosts`, and waits
/// until they are closed. Removes the files of dead keepers. Throws std::runtime_error if other
/// users can access the folder, std::invalid_argument as make_fleet does.
EndedConnections end_kept_connections(const std::optional<std::vector<Host>>& hosts,
                                      const ConnectOptions& options);

}  // namespace dtool::ssh
