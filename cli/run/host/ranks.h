// The processes of one machine: `dtool-host ranks`, which the script of a job becomes when all is
// prepared (cli/run/scripts/launch.sh).
#pragma once

#include <string>
#include <vector>

namespace dtool::host {

/// Starts a process for each local rank, hands TERM, INT and USR1 on to them, and waits. `words`:
/// state folder, attempt, place of this machine, its first rank, how many processes, and the
/// program with its arguments. The first process that fails is noted in the file first_failure and
/// in the log. A session that supervises ends the others then; else they are ended here: TERM, and
/// 5 s later KILL. Returns the exit code of the first that failed, 128 + signal if one ended it.
/// Throws std::runtime_error.
int run_ranks(const std::vector<std::string>& words);

}  // namespace dtool::host
