// The processes of one machine that mpirun starts: `dtool-host keep`, which the script of a job
// becomes under `--launcher mpi` (cli/run/scripts/keep_ranks.sh).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtool::host {

/// Waits for the processes of this machine and ends as they do. `words`: state folder, attempt,
/// this machine's first rank, how many processes mpirun starts here, and mpirun's pid, a child of
/// this process (0: it runs on another machine). A process leaves ranks/ATTEMPT.LOCAL_RANK in the
/// state folder (its pid and start time), the pid of its program in that with .program, its exit
/// code in .code, and .told where mpirun told it to end (cli/run/scripts/rank.sh). What failed
/// first is noted in first_failure. Where no session supervises, the others of this machine are
/// ended: TERM, and 5 s later KILL. Throws std::runtime_error.
int keep_ranks(const std::vector<std::string>& words);

/// The first words of mpirun that say something, and which host it lost where it did.
std::string words_of_mpirun(std::string_view said);

}  // namespace dtool::host
