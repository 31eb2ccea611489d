// Keeps the sessions that a command has opened for the commands after it: a process of its own,
// which the command leaves behind when it ends, and which ends with its last session.
#pragma once

#include <chrono>
#include <vector>

#include "ssh/kept/offered_session.h"

namespace dtool::ssh {

/// Forks the keeper, which goes on with `reactor` and all that runs in it until each session was
/// idle for `idle`, lost or given up, and never returns. In this process: whether there is a keeper
/// now; if so, nothing of `reactor` may be used or destroyed any more, since the sessions are the
/// keeper's.
bool start_keeper(Reactor& reactor, std::vector<KeptSession>& sessions, std::chrono::seconds idle);

}  // namespace dtool::ssh
