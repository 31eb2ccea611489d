// SPDX-License-Identifier: MIT
// How the keeper's process drops all that it inherited from the command that forked it.
#pragma once

#include <sys/types.h>

#include <string>
#include <unordered_set>

namespace dtool::ssh {

/// Gives the process a session (in the kernel's sense) of its own, no terminal, `/` as its folder,
/// and `title` as its command line in ps. Closes all files, locks, pipes and sockets except `kept`,
/// pairs of sockets that `parent` (the command's process) made, and the event loop's own. Empties
/// the environment; other users see neither it nor the arguments.
void let_go_of_parent(const std::string& title, const std::unordered_set<int>& kept, pid_t parent);

}  // namespace dtool::ssh
