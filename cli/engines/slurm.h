// SPDX-License-Identifier: MIT
// The text that a run gives to Slurm: sbatch's directives, and the flags behind them. Pure
// functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/engines/scheduler.h"

namespace dtool::cli {

/// Its flags. Each has the meaning of sbatch's flag of that name.
const std::vector<SchedulerOption>& slurm_options();

/// The job that dtool runs in, started by salloc or by a batch script.
struct Allocation {
  std::string job;
  std::vector<int> tasks = {1};  ///< the number of tasks on each node
};

/// As the environment tells.
std::optional<Allocation> surrounding_allocation();

/// The `#SBATCH` lines of a job. If a checkpoint is to be written, they ask for a signal before the
/// job's end, unless an argument does so already.
std::string sbatch_lines(const JobShape& shape, JobRequest request);

/// A check for CLI11: the complaint, or nothing.
std::string must_be_sbatch_argument(const std::string& text);

}  // namespace dtool::cli
