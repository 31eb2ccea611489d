// One process of a run that mpirun or a scheduler starts: `dtool-host rank`. It runs the script
// `rank` of the run, which readies the environment and becomes the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtool::host {

/// Hands TERM, INT and USR1 on to the program, records its end, and ends as it does. `words`: mpi,
/// the machine's state folder (the current one), the attempt, and the places of the machines that
/// take part in it; or slurm or gridengine, the run's folder, the attempt, rank 0's address and
/// port, the number of the job in its array, and the place of its first machine. Grid Engine's job
/// adds what Slurm has in variables: machine, rank, local rank, host, and the numbers of machines
/// and of processes on each. The script gets the same, with all numbers. Throws std::runtime_error.
int run_rank(const std::vector<std::string>& words);

/// Slurm's `4,1(x2)`, four on the first node and one on each of two more, as `4 1 1`; empty where
/// it is nothing of the kind.
std::vector<int> parse_tasks_per_node(std::string_view text);

}  // namespace dtool::host
