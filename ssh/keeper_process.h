// How the keeper's process lets go of all that it got from the command that forked it.
#pragma once

#include <string>
#include <unordered_set>

namespace dtool::ssh {

/// A session (the kernel's) of its own, no terminal, `/` as its folder, no file, lock, pipe or
/// socket but `kept`, pairs of sockets within the process, and the event loop's own; no
/// environment, for others to see neither; and `title` as its command line in ps.
void let_go_of_parent(const std::string& title, const std::unordered_set<int>& kept);

}  // namespace dtool::ssh
