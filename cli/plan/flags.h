// SPDX-License-Identifier: MIT
// The flags of `dtool run`, and the settings behind them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/host_options.h"
#include "cli/plan/environment.h"
#include "cli/plan/program_flags.h"
#include "cli/settings.h"

namespace dtool::cli {

class Options;

/// What a run begins from: `dtool run` with an experiment or a program, or with --resume, or `dtool
/// rerun`.
enum class Start { anew, resumed, rerun };

/// `rerun` or `resumed`, for a run that cannot be.
inline const char* verb_of(Start start) {
  return start == Start::rerun ? "rerun" : "resumed";
}

/// The flags as typed; empty if not given.
struct RunFlags {
  HostOptions hosts;
  std::string launcher;
  std::string experiment;
  std::string resume;  ///< the id of a run, or its beginning
  std::string rerun;   ///< likewise
  std::string listener = "auto";
  std::string config_kwargs;
  std::optional<std::uint64_t> seed;
  EnvironmentFlags environment;
  std::string environment_file;     ///< of --environment
  std::vector<std::string> extras;  ///< of its project
  std::vector<std::string> groups;
  bool system_site_packages = false;
  std::string code_path;
  std::string output_dir;
  std::string extra_tag;
  std::string nproc_per_node;
  std::string gpus;
  std::string on_failure;
  std::optional<int> max_restarts;
  std::optional<int> lost_after;  ///< seconds
  ProgramFlags program;
  std::vector<std::string> exports;
  std::vector<std::string> env_files;
  std::vector<std::string> excludes;
  std::vector<std::string> typed_excludes;  ///< those of excludes that the settings do not have
  std::vector<std::string> includes;
  std::vector<std::string> data;
  bool no_sync = false;
  bool relay = false;
  bool no_relay = false;
  bool force = false;
  bool own_tree = false;
  bool in_place = false;
  bool resync = false;
  bool broadcast_outputs = false;
  bool no_trainer_bundle = false;
  bool follow = false;
  bool dry_run = false;
};

/// Adds them to `dtool run`, with its EXPERIMENT. `launchers`: the names that --launcher takes.
void add_run_flags(Options& command, RunFlags& flags, const std::vector<std::string>& launchers);

/// Adds to `dtool rerun` its RUN and the flags that it shares with `dtool run`: all but those about
/// what runs, and about sending the current folder.
void add_rerun_flags(Options& command, RunFlags& flags, const std::vector<std::string>& launchers);

/// Fills flags that were not given from the settings, else with the defaults.
void apply_settings(const Settings& settings, RunFlags& flags);

}  // namespace dtool::cli
