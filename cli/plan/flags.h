// SPDX-License-Identifier: MIT
// The flags of `dtool run`, and the settings behind them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/host_options.h"
#include "cli/plan/environment.h"
#include "cli/plan/plan.h"
#include "cli/settings.h"

namespace dtool::cli {

class Options;

/// The words that --fill replaces in a program's words.
inline constexpr std::array<std::string_view, 11> kPlaceholders = {
    "{rank}", "{local_rank}", "{world_size}", "{machine_id}", "{machines}", "{listener}",
    "{ip}",   "{port}",       "{seed}",       "{output_dir}", "{run_id}"};

/// The flags about the program, as typed.
struct ProgramFlags {
  bool fill = false;
  std::string rendezvous;
  bool independent = false;
  std::optional<int> ends_with;  ///< the id of a machine
};

void add_program_flags(Options& command, ProgramFlags& flags);

/// Takes them into a plan that has its engine, machines, program and environment. Throws
/// UsageError if they do not fit these, or each other.
void take_program_flags(const ProgramFlags& flags, RunPlan& plan);

/// The first placeholder in the program's words.
std::optional<std::string_view> find_placeholder(const std::vector<std::string>& program);

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
  killfiles::Run run;  ///< the fields of the run that have a flag; what is not given is as in Run
  std::string experiment;
  std::string resume;  ///< the id of a run, or its beginning
  std::string rerun;   ///< the id of a run, or its beginning
  std::string listener = "auto";
  std::string config_kwargs;
  EnvironmentFlags environment;
  std::string environment_file;     ///< the file of --environment
  std::vector<std::string> extras;  ///< the extras of that file's project
  std::vector<std::string> groups;
  bool system_site_packages = false;
  std::string code_path;
  std::string extra_tag;
  std::string nproc_per_node;
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

/// Adds them to `dtool run`, with its EXPERIMENT. `engines`: the names that --launcher takes.
void add_run_flags(Options& command, RunFlags& flags, const std::vector<std::string>& engines);

/// Adds to `dtool rerun` its RUN and the flags that it shares with `dtool run`: all but those about
/// what runs, and about sending the current folder.
void add_rerun_flags(Options& command, RunFlags& flags, const std::vector<std::string>& engines);

/// Fills flags that were not given from the settings, else with the defaults.
void apply_settings(const Settings& settings, RunFlags& flags);

// Numbers and addresses of a run that a user types: where rank 0 listens, processes per machine.

struct ListenerAddress {
  std::string address;
  std::uint16_t port = 0;
};

/// `--distributed_ip_and_port IP:PORT` ([v6]:PORT). The host must be the first target, which runs
/// rank 0: its name, or its address in the SSH configuration. A name becomes an empty
/// address: the one by which the host is reached. Throws UsageError.
ListenerAddress parse_listener(const std::string& text, const Targets& targets);

/// Whether the name or address can only mean the machine on which it is used.
bool is_loopback(const std::string& name);

/// If the first target is this machine: the name or address, by the SSH configuration, of the first
/// that is another. The way there tells this machine's own address for the others. Else empty.
std::string peer_of(const Targets& targets);

/// `--nproc_per_node N`. Throws UsageError.
int parse_processes(const std::string& text);

}  // namespace dtool::cli
