// One process of a run that mpirun or a scheduler starts: `dtool-host rank`. It runs the script
// `rank` of the run, which readies the environment and becomes the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtool::host {

/// Hands TERM, INT and USR1 on to the program, records its end, and returns its exit code. `words`
/// of mpirun: `mpi`, the machine's state folder (the current folder), the attempt, and the places
/// of the machines that take part. `words` of a scheduler: `slurm` or `gridengine`, the run's
/// folder, the attempt, rank 0's address and port, the number of the job in its array, and the
/// place of its first machine. Grid Engine adds what Slurm has in variables: machine, rank, local
/// rank, host, the number of machines, and the processes on each. The script gets the same words
/// and all numbers. Throws std::runtime_error if a word is missing or not a number.
int run_rank(const std::vector<std::string>& words);

/// Slurm's `4,1(x2)` (four on the first node, one on each of the next two) as `4 1 1`; empty if the
/// text has another form.
std::vector<int> parse_tasks_per_node(std::string_view text);

}  // namespace dtool::host
