// SPDX-License-Identifier: MIT
// The processes of one machine: `dtool-host ranks`, which a job's script executes when everything
// is prepared (cli/plan/scripts/launch.sh).
#pragma once

#include <string>
#include <vector>

namespace dtool::host {

/// Starts a process for each local rank, passes TERM, INT and USR1 on to them, and waits. `words`:
/// state folder, attempt, place of this machine, its first rank, the number of processes, what they
/// are told of each other (env, never, or independent: then a failure ends no other), whether
/// {rank} and {local_rank} are replaced in the program's words (yes or no), and the program with
/// its arguments. The first process that fails is recorded in the file first_failure
/// and in the log. If a session supervises, it then ends the others; else they are ended here:
/// TERM, and 5 s later KILL. Returns the exit code of the first failure, 128 + signal if a signal
/// ended it. Throws std::runtime_error.
int run_ranks(const std::vector<std::string>& words);

}  // namespace dtool::host
