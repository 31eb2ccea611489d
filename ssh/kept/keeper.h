// SPDX-License-Identifier: MIT
// Keeps the sessions that a command has opened for later commands. The keeper is a process that the
// command leaves behind when it ends. It ends with its last session.
#pragma once

#include <chrono>
#include <vector>

#include "ssh/kept/offered_session.h"

namespace dtool::ssh {

/// Forks the keeper. The keeper goes on with `reactor` and all that runs in it until each session
/// was idle for `idle`, lost or given up; there, the function never returns. In this process it
/// returns whether there is a keeper. If so, nothing of `reactor` may be used or destroyed any
/// more: the sessions are the keeper's.
bool start_keeper(Reactor& reactor, std::vector<KeptSession>& sessions, std::chrono::seconds idle);

}  // namespace dtool::ssh
