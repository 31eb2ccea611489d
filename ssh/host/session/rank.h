// SPDX-License-Identifier: MIT
// The processes of a run on its machines: one that mpirun or a scheduler starts (`dtool-host
// rank`), and all of one machine (`dtool-host ranks`).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtool::host {

/// Runs the script `rank` of the run, which readies the environment and becomes the program.
/// Hands TERM, INT and USR1 on to the program, records its end, and returns its exit code. The
/// first of `words` tells who looks after the process:
///
/// - `machine`: the session of its machine. Then come the machine's state folder (the current
///   folder), the rank, the local rank, the number of the machine's processes, whether the process
///   is torchrun, the attempt, and the places of the machines that take part. The script gets what
///   follows the folder, without the number of processes and torchrun.
/// - `job`: a scheduler's job. Then come the run's folder, the attempt, rank 0's address and port,
///   the number of the job in its array, the place of its first machine, whether the process is
///   torchrun, `words` or `variables`, and seven numbers of the process: machines, machine, rank,
///   local rank, world size, processes (of every machine, or a list of each machine's as below),
///   and the machine's name. After `variables` these are the names of the environment variables
///   that hold them. After `words` signals come as words too, on standard input. The script gets
///   the folder up to the array number, the machine's place in the run, and the seven numbers.
///
/// Whether it is torchrun is `yes` or `no`: torchrun starts the ranks of its machine by itself, and
/// the log has no rank's name.
///
/// Throws std::runtime_error if a word is missing or not a number.
int run_rank(const std::vector<std::string>& words);

/// `4,1(x2)` (four processes on the first machine, one on each of the next two) as `4 1 1`; empty
/// if the text has another form.
std::vector<int> parse_tasks_per_node(std::string_view text);

/// What a job's script executes when everything is prepared (cli/plan/scripts/launch.sh). Starts a
/// process for each local rank, passes TERM, INT and USR1 on to them, and waits. `words`:
/// state folder, attempt, place of this machine, its first rank, the number of processes, what they
/// are told of each other (env, never, or independent: then a failure ends no other), whether
/// {rank} and {local_rank} are replaced in the program's words (yes or no), and the program with
/// its arguments. The first process that fails is recorded in the file first_failure
/// and in the log. If a session supervises, it then ends the others; else they are ended here:
/// TERM, and 5 s later KILL. Returns the exit code of the first failure, 128 + signal if a signal
/// ended it. Throws std::runtime_error.
int run_ranks(const std::vector<std::string>& words);

}  // namespace dtool::host
