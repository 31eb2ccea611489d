// Which rank a process is, and who started it: the machine's own process (RANK and its fellows, as
// torchrun sets them too), srun or mpirun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/endpoint.h"
#include "trainer/launch/environment.h"
#include "trainer/settings/command_line.h"

namespace dtool::trainer {

/// A worker's place in the run.
struct Place {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;        ///< among the workers of this machine
  int local_world_size = 1;  ///< workers of this machine
  int machine = 0;           ///< this machine's number; 0 if the launcher does not tell
  Endpoint listener;         ///< where rank 0 listens

  bool operator==(const Place&) const = default;
};

/// The place that a launcher gave this process; absent when it is the machine's own process and has
/// to start the workers. RANK comes first; srun's and mpirun's variables count unless the flags say
/// --machine_id or --distributed_nodes. Throws UsageError when the variables contradict each other.
std::optional<Place> place_from(const Environment& environment, const Options& options);

/// How many threads a worker gains by: its share of the machine's `cores`, but no more than the
/// work of a step (forward multiply-adds) can keep busy, and at least 1.
int useful_threads(int cores, int local_world_size, std::int64_t multiply_adds_per_step);

/// A worker's environment, as NAME=VALUE: what `place_from` reads `place` from, and unless the user
/// set them OMP_NUM_THREADS and settings that let idle threads sleep. (Spinning ones slow a small
/// network down thirtyfold where other processes want the cores too.)
std::vector<std::string> worker_variables(const Place& place, const Environment& environment,
                                          int threads);

/// The first host of a Slurm node list: `red[01-03,7],blue` gives `red01`.
std::string first_of_node_list(const std::string& list);

/// `machine 1 (rank 2, 3), machine 2 (rank 4, 5)`, the first eight of them: machines have equally
/// many ranks, in order.
std::string name_missing_ranks(const std::vector<int>& ranks, int local_world_size);

/// This machine's name, without blanks, for messages.
std::string host_name();

/// Processor cores that this process may use.
int count_cores();

}  // namespace dtool::trainer
