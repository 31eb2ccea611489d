// How the keeper's process lets go of all that it got from the command that forked it.
#pragma once

#include <sys/types.h>

#include <string>
#include <unordered_set>

namespace dtool::ssh {

/// A session (the kernel's) of its own, no terminal, `/` as its folder, no file, lock, pipe or
/// socket but `kept`, pairs of sockets that `parent` made, and the event loop's own; no
/// environment, for others to see neither; and `title` as its command line in ps.
/// `parent` is that command's process.
void let_go_of_parent(const std::string& title, const std::unordered_set<int>& kept, pid_t parent);

}  // namespace dtool::ssh
