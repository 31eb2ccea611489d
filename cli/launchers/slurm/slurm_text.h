// What a run asks of Slurm, as text: sbatch's directives, and the flags behind them. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/launchers/scheduler/scheduler.h"
#include "cli/launchers/scheduler/scheduler_text.h"

namespace dtool::cli {

/// Its flags, each one of sbatch's with the same meaning.
const std::vector<SchedulerOption>& slurm_options();

/// A job that dtool was started in: by salloc, or by a batch script.
struct Allocation {
  std::string job;
  std::vector<int> tasks = {1};  ///< on each node
};

/// As the environment tells.
std::optional<Allocation> surrounding_allocation();

/// The `#SBATCH` lines of a job. Where a checkpoint is to be written, the script hears of the job's
/// end in time, unless an argument says so itself.
std::string sbatch_lines(const JobShape& shape, JobRequest request);

/// A check for CLI11: the complaint, or nothing.
std::string must_be_sbatch_argument(const std::string& text);

}  // namespace dtool::cli
