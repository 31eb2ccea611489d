// SPDX-License-Identifier: MIT
// Keeps the sessions that a command has opened for later commands. The keeper is a process that the
// command leaves behind when it ends. It ends with its last session.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <unordered_set>
#include <vector>

#include "ssh/kept/offered_session.h"

namespace dtool::ssh {

/// Forks the keeper. The keeper goes on with `reactor` and all that runs in it until each session
/// was idle for `idle`, lost or given up; there, the function never returns. In this process it
/// returns whether there is a keeper. If so, nothing of `reactor` may be used or destroyed any
/// more: the sessions are the keeper's.
bool start_keeper(Reactor& reactor, std::vector<KeptSession>& sessions, std::chrono::seconds idle);

// How the keeper's process drops all that it inherited from the command that forked it.

/// Gives the process a session (in the kernel's sense) of its own, no terminal, `/` as its folder,
/// and `title` as its command line in ps. Closes all files, locks, pipes and sockets except `kept`,
/// pairs of sockets that `parent` (the command's process) made, and the event loop's own. Empties
/// the environment; other users see neither it nor the arguments.
void let_go_of_parent(const std::string& title, const std::unordered_set<int>& kept, pid_t parent);

}  // namespace dtool::ssh
