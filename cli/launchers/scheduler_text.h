// SPDX-License-Identifier: MIT
// The text that schedulers share: flags, times, seeds and processes. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::cli {

/// A flag of `dtool run` that a scheduler knows with the same meaning.
struct SchedulerOption {
  std::string flag;   ///< dtool's spelling, with underscores
  std::string value;  ///< name of its value in the help text; empty: the flag takes none
  std::string about;
};

/// What the user asked for.
struct JobRequest {
  std::optional<int> nodes;
  std::string ntasks_per_node;
  std::string seeds;
  std::map<std::string, std::string> values;  ///< of the SchedulerOptions, by flag; empty: not
                                              ///< given
  std::vector<std::string> arguments;         ///< further arguments in the scheduler's spelling

  /// The value of a flag; empty if it was not given or the scheduler does not have it.
  std::string value(const std::string& flag) const;
};

/// Whether the further arguments contain that name, as `NAME` or `NAME=VALUE`.
bool has_argument(const JobRequest& request, std::string_view name);

/// Seconds of `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`; nothing for an empty text and for
/// words that mean no limit. Throws UsageError on anything else.
std::optional<std::uint64_t> seconds_of_time(const std::string& time);

/// Seconds between the signal and the end of a job whose --time is `time` (may be empty): a quarter
/// of it, at most a minute. Throws UsageError as seconds_of_time.
int notice_before_end(const std::string& time);

/// Processes per node, from those of the three that were given; 1 if none was.
int processes_of_node(const std::string& ntasks_per_node, const std::string& nproc_per_node,
                      const std::string& gpus_per_node);

/// `1-5` or `1,3,7` or both; none for an empty text. Throws UsageError.
std::vector<std::uint64_t> parse_seeds(const std::string& text);

/// A check of a value: the complaint, or nothing.
std::string must_be_one_line(const std::string& text);

}  // namespace dtool::cli
