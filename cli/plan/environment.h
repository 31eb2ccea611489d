// SPDX-License-Identifier: MIT
// The environment of a run's processes on a host: modules, an activated environment, a container,
// torchrun. Contains its flags of `dtool run` and `dtool check`, its settings, and its variables
// for scripts on hosts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/settings.h"

namespace dtool::cli {

class Options;

enum class ContainerRuntime { apptainer, podman, charliecloud };
enum class Torchrun { no, yes };

/// A file or folder of the host that the container sees, absolute or from `~/`.
struct Bind {
  std::string source;
  std::string target;
};

struct Container {
  ContainerRuntime runtime = ContainerRuntime::apptainer;
  std::string image;        ///< podman: its name; else a path, from the code folder if relative
  std::vector<Bind> binds;  ///< the binds in addition to the run's own folders
};

struct Environment {
  std::vector<std::string> modules;    ///< loaded in this order, after a purge
  std::string activate;                ///< a script, or an environment's folder; empty: none
  std::optional<Container> container;  ///< nothing: the host itself
  Torchrun torchrun = Torchrun::no;
  std::string requirements = {};  ///< the file from which `activate` is built; empty: none
};

/// As typed; empty if a flag was not given.
struct EnvironmentFlags {
  std::string activate;
  std::string modules;
  std::string container;
  std::string container_engine;
  std::vector<std::string> binds;
  bool torchrun = false;
};

void add_environment_flags(Options& command, EnvironmentFlags& flags);

/// From the flags, else from the settings; binds from both. Throws UsageError on impossible values.
Environment make_environment(const EnvironmentFlags& flags, const Settings& settings);

/// Throws UsageError if torchrun cannot start these words.
void check_torchrun(const Environment& environment, const std::vector<std::string>& program);

/// `apptainer`, `podman` or `charliecloud`.
const char* name_of(ContainerRuntime runtime);

/// Removes parts that will be sent with the code, and so need not be on the hosts yet: paths to
/// what is in the current folder, relative ones and those below the code's folder on the hosts.
Environment without_sent(Environment environment, const std::string& code_folder);

/// Whether there are such parts.
bool has_sent(const Environment& environment, const std::string& code_folder);

/// The variables for environment.sh and ready.sh, and the functions that they use; `exported` has
/// the names of the run's own variables.
std::string environment_script(const Environment& environment,
                               const std::vector<std::string>& exported);

/// Those of `modules`, `env_activate_path`, `container`, `container_engine`, `bind` and `torchrun`
/// that were given.
nlohmann::json to_json(const Environment& environment);

/// The same for people: name and value of each.
std::vector<std::pair<std::string, std::string>> rows_of(const Environment& environment);

}  // namespace dtool::cli
