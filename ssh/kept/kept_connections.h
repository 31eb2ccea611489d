// The connections that are kept for later commands, seen from outside: which there are, and ending
// them. `dtool disconnect` uses it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "ssh/fleet.h"
#include "ssh/host.h"

namespace dtool::ssh {

/// One that was told to end.
struct EndedConnection {
  Host host;               ///< as it was named when the connection was made
  std::string target;      ///< where that led: `user@address:port`
  bool is_in_use = false;  ///< by a command that still runs, with which it will end
};

struct EndedConnections {
  std::vector<EndedConnection> ended;
  /// Pids of keepers and of `ssh` masters that did not answer within five seconds: what they keep
  /// is not known.
  std::vector<pid_t> silent;
};

/// Ends all kept connections of this user on this machine, or those that lead where `hosts` do, and
/// waits until they are closed; removes what dead keepers have left. Throws std::runtime_error
/// where their folder is not this user's alone, std::invalid_argument as make_fleet does.
EndedConnections end_kept_connections(const std::optional<std::vector<Host>>& hosts,
                                      const ConnectOptions& options);

}  // namespace dtool::ssh
