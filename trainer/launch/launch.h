// SPDX-License-Identifier: MIT
// Which rank a process is, and what started it: this machine's own process (RANK and related
// variables, as torchrun sets them), srun or mpirun.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/settings/command_line.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// A worker's place in the run.
struct Place {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;        ///< the worker's number among the workers of this machine
  int local_world_size = 1;  ///< workers of this machine
  int machine = 0;           ///< this machine's number; 0 if the launcher gives none
  Endpoint listener;         ///< the endpoint where rank 0 listens

  bool operator==(const Place&) const = default;
};

/// The place that a launcher gave this process; absent if this is the machine's own process, which
/// starts the workers. RANK has priority. The variables of srun and mpirun count unless the flags
/// contain --machine_id or --distributed_nodes. Throws UsageError if the variables contradict each
/// other.
std::optional<Place> place_from(const Environment& environment, const CommandLine& options);

/// How many threads make a worker faster: its share of the machine's `cores`, but no more than the
/// work of a step (forward multiply-adds) can keep busy, and at least 1.
int useful_threads(int cores, int local_world_size, std::int64_t multiply_adds_per_step);

/// A worker's environment, as NAME=VALUE: the variables from which `place_from` reads `place`. If
/// the user has not set them, also OMP_NUM_THREADS and settings that let idle threads sleep.
/// (Spinning threads slow a small network down thirtyfold if other processes want the cores too.)
std::vector<std::string> worker_variables(const Place& place, const Environment& environment,
                                          int threads);

/// The first host of a Slurm node list: `red[01-03,7],blue` gives `red01`.
std::string first_of_node_list(const std::string& list);

/// `machine 1 (rank 2, 3), machine 2 (rank 4, 5)`, at most eight of them. Machines have equally
/// many ranks, in order.
std::string name_missing_ranks(const std::vector<int>& ranks, int local_world_size);

/// This machine's name, without blanks, for messages.
std::string host_name();

/// The processor cores that this process may use.
int count_cores();

// How many GPUs this process may use, without asking a driver: CUDA_VISIBLE_DEVICES interpreted as
// CUDA does, and the GPUs in /dev and /proc. Local rank i gets the i-th GPU.

/// The GPUs that CUDA would show this process: all of the machine's, or those that
/// CUDA_VISIBLE_DEVICES lists (killfiles/gpu_list.h). `root` is for tests.
int count_gpus(const Environment& environment, const std::filesystem::path& root = "/");

/// With NCCL each worker needs its own GPU: throws UsageError if there are more `workers` than
/// `gpus`. Without GPUs, or with gloo, any number is allowed.
void check_gpus(Backend wanted, int workers, int gpus);

}  // namespace dtool::trainer
