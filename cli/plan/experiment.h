// SPDX-License-Identifier: MIT
// Experiments on the launcher: finds and reads them, merges `--config_kwargs`, and prepares them
// for the hosts.
#pragma once

#include <string>
#include <vector>

namespace dtool::cli {

struct ExperimentText {
  std::string name;         ///< the file's name without `.toml`
  std::string toml;         ///< the TOML text with `--config_kwargs` merged in
  bool is_shipped = false;  ///< it came with dtool, not from the user
};

/// Reads `file`, or the experiment of that name that comes with dtool, and merges the JSON object
/// `config_kwargs` (may be empty) into its tables, key by key. Throws UsageError with file and line
/// on TOML errors, with line and column on JSON errors, if `distributed_nodes` differs from
/// `machines`, and if there is no such experiment (the message names the known ones).
ExperimentText read_experiment(const std::string& file, const std::string& config_kwargs,
                               int machines);

/// The experiment of a run that repeats another: `toml`, as recorded, with `config_kwargs` merged
/// in as above. `distributed_nodes` follows the machines.
ExperimentText repeated_experiment(const std::string& name, const std::string& toml,
                                   const std::string& config_kwargs, int machines);

/// The same for a run that goes on from another. Throws UsageError also if something changes on
/// which a checkpoint depends: the workload, the model, the optimizer's kind, the samples.
ExperimentText resumed_experiment(const std::string& name, const std::string& toml,
                                  const std::string& config_kwargs, int machines);

/// Whether it is a file, or the name of an experiment that comes with dtool.
bool is_experiment(const std::string& name);

/// The names of the experiments that come with dtool, in order.
std::vector<std::string> shipped_experiments();

/// Checks `config_kwargs` of a run without an experiment: only `distributed_nodes` is allowed.
void check_config_kwargs(const std::string& config_kwargs, int machines);

}  // namespace dtool::cli
