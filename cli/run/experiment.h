// Experiments on the launcher's side: found, read, `--config_kwargs` merged in, ready to be sent to
// the hosts.
#pragma once

#include <string>
#include <vector>

namespace dtool::cli {

struct Experiment {
  std::string name;         ///< the file's, without `.toml`
  std::string toml;         ///< with the settings merged in
  bool is_shipped = false;  ///< one that came with dtool, not a file of the user's
};

/// Reads `file`, or the experiment of that name that comes with dtool, and merges the JSON object
/// `config_kwargs` (may be empty) into its tables, key by key. Throws UsageError with file and line
/// on TOML errors, with line and column on JSON errors, where `distributed_nodes` is there and not
/// `machines`, and where there is no such experiment (known ones are named).
Experiment read_experiment(const std::string& file, const std::string& config_kwargs, int machines);

/// The names of the experiments that come with dtool, in order.
std::vector<std::string> shipped_experiments();

/// Checks `config_kwargs` where there is no experiment to merge it into: only `distributed_nodes`
/// may be there.
void check_config_kwargs(const std::string& config_kwargs, int machines);

}  // namespace dtool::cli
