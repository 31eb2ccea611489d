// SPDX-License-Identifier: MIT
// The processes that mpirun starts on one machine: `dtool-host keep`, which a job's script executes
// at its end under `--launcher mpi` (cli/run/scripts/keep_ranks.sh).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtool::host {

/// Waits for the processes of this machine and ends as they do. `words`: state folder, attempt,
/// this machine's first rank, the number of its processes, and mpirun's pid, a child of this
/// process (0: mpirun runs on another machine). Each process leaves files ranks/ATTEMPT.LOCAL_RANK
/// in the state folder (cli/run/scripts/rank.sh): its pid and start time; with .program the pid of
/// its program; with .code its exit code; with .told a mark if mpirun told it to end. The first
/// failure is recorded in first_failure. If no session supervises, the machine's other processes
/// are ended: TERM, and 5 s later KILL. Throws std::runtime_error.
int keep_ranks(const std::vector<std::string>& words);

/// The first meaningful words of mpirun's output, and the host that it lost, if any.
std::string words_of_mpirun(std::string_view said);

}  // namespace dtool::host
