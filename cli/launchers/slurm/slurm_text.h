// What a run asks of Slurm, as text: sbatch's directives, and the flags behind them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::cli {

/// A flag of `dtool run` that is one of sbatch's with the same meaning.
struct SlurmOption {
  std::string flag;   ///< dtool's spelling, with underscores
  std::string value;  ///< what the help text calls its value
  std::string about;
};

/// Those that take a value.
const std::vector<SlurmOption>& slurm_options();

/// What the user asked for.
struct SlurmRequest {
  std::map<std::string, std::string> values;  ///< of slurm_options, by flag; empty: not given
  std::vector<std::string> arguments;         ///< further ones, `--name` or `--name=value`
  bool is_exclusive = false;
};

/// A job that dtool was started in: by salloc, or by a batch script.
struct Allocation {
  std::string job;
  std::vector<int> tasks = {1};  ///< on each node
};

/// Slurm's `4,1(x2)`, four on the first node and one on each of two more, as `4 1 1`; empty where
/// it is nothing of the kind.
std::vector<int> parse_tasks_per_node(std::string_view text);

/// As the environment tells.
std::optional<Allocation> surrounding_allocation();

/// The `#SBATCH` lines of a job.
std::string sbatch_lines(std::string_view name, std::size_t nodes, int tasks,
                         const SlurmRequest& request);

/// Whether an argument of that name is among the further ones.
bool has_argument(const SlurmRequest& request, std::string_view name);

/// Seconds between Slurm's notice and the end of a job whose --time is `time` (may be empty): a
/// quarter of it, a minute at most. Throws UsageError on what Slurm does not take as a time.
int notice_before_end(const std::string& time);

/// Processes on each node, of what was given of the three; 1 where nothing says more.
int processes_of_node(const std::string& ntasks_per_node, const std::string& nproc_per_node,
                      const std::string& gpus_per_node);

/// `1-5` or `1,3,7` or both; none for an empty text. Throws UsageError.
std::vector<std::uint64_t> parse_seeds(const std::string& text);

// Checks for CLI11: the complaint, or nothing.
std::string must_be_one_line(const std::string& text);
std::string must_be_sbatch_argument(const std::string& text);

}  // namespace dtool::cli
