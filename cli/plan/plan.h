// SPDX-License-Identifier: MIT
// What runs where: a run's machines, ranks and variables, and the script of each machine. Pure
// functions: no host is reached.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/plan/environment.h"
#include "killfiles/killfile.h"
#include "killfiles/run.h"
#include "ssh/host.h"
#include "ssh/screen_job.h"

namespace dtool::cli {

/// What leads a machine's processes: a screen session of dtool's, or a tool of the engine.
enum class Leader { screen, other };

/// One machine's part. Paths are on the host, absolute or from `~/`.
struct MachinePlan {
  int id = 0;
  ssh::Host host;
  std::string code_folder;
  std::string tree;    ///< the run's own copy of the code; empty: it runs in the code folder
  int processes = 1;   ///< the number of processes of the program or the trainer
  int first_rank = 0;  ///< the rank of its local rank 0
  /// The threads of each process of a program, for OpenMP; 0: its library decides.
  int threads = 0;
  std::string trainer;  ///< path of the bundled trainer there; empty: the user's program runs
  std::string pytorch;  ///< folder of the PyTorch that this trainer uses there; empty: none
  Leader leader = Leader::screen;
  /// This part's folder in the run's folder, if the run has several; empty: the whole folder.
  std::string part;
  /// The identity of the host, if its session will run there.
  killfiles::HostIdentity identity = {};
  ssh::Host peer;  ///< the host's name for machine 0's own ssh, if an engine uses that
};

struct RunPlan : killfiles::Run {
  std::string address;  ///< machine 0's, of which `listener` is made; empty: known once it runs
  std::uint16_t port = 0;
  int world_size = 0;  ///< 0: unknown until the hosts were asked
  /// The port where machine 0 listens for reports; 0: there are no reports.
  std::uint16_t coordinator_port = 0;
  std::string token;  ///< secret that a machine must know to report
  bool fill = false;  ///< placeholders in its words are replaced
  /// Things that its processes are told of each other: env, never, or independent (each is a job of
  /// its own).
  std::string rendezvous = "env";
  std::optional<int> ends_with;  ///< the machine whose good end is the run's
  std::string git_commit;        ///< the commit of the sent code; empty: unknown
  Environment environment;       ///< the environment of the processes on a host
  /// The variables from the settings and --export.
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<MachinePlan> machines;
  /// The networks between machine 0 and the others (CIDR), if known.
  std::vector<std::string> networks;
};

/// Gives each machine its first rank, and the run its world size.
void number_ranks(RunPlan& plan);

/// The path of the script that Python or a shell runs, or of a program that is named by a relative
/// path; nothing for a module, for text, or for a program elsewhere.
std::optional<std::string> script_of(const std::vector<std::string>& program);

/// The module that Python is told to run (`python3 -m MODULE`); nothing for a script.
std::optional<std::string> module_of(const std::vector<std::string>& program);

/// Whether it is a shell that first reads what a log-in or a terminal reads (`bash -lc TEXT`),
/// where PATH may be set anew.
bool reads_log_in_files(const std::vector<std::string>& program);

/// The name of a run of that program: its file's name without `.py`; for Python and
/// torchrun, the script's or the module's.
std::string name_of_program(const std::vector<std::string>& program);

/// `IP:PORT` of rank 0, `[v6::addr]:PORT` for IPv6.
std::string listener_of(const RunPlan& plan);

/// `IP:PORT` for the machines' reports; empty if machine 0 does not listen.
std::string coordinator_of(const RunPlan& plan);

/// The run's own folder under the output folder: from `/`, from `~/`, or from the code folder.
std::string outputs_of_run(const RunPlan& plan);

/// The same on the first machine.
std::string run_output_folder(const RunPlan& plan);

/// The machine's part of it, there.
std::string output_folder(const RunPlan& plan, const MachinePlan& machine);

/// What stands before `.log` in the names of its logs: a run that goes on in another's output
/// folder has logs of its own there, `machine0.RUN.log`.
std::string log_mark(const RunPlan& plan);

/// The job of the machine with its names: run id, session, state folder, log.
ssh::ScreenJob name_job(const RunPlan& plan, const MachinePlan& machine);

/// Defines the variables that the scripts of a machine's processes need
/// (cli/plan/scripts/environment.sh).
std::string script_variables(const RunPlan& plan, const MachinePlan& machine);

// The variables of --export and --env_file for a run's processes. Their values may be secrets: they
// go to the hosts in a private file, and are neither recorded nor shown.

using Variable = std::pair<std::string, std::string>;

/// `NAME` or `NAME=value` of --export; a missing value is taken from this process. Throws
/// UsageError on an impossible name, and if this process has no such variable.
Variable parse_export(const std::string& text);

/// The variable that hides AMD's other GPUs.
inline constexpr std::string_view kAmdsGpus = "HIP_VISIBLE_DEVICES";

/// `0,2` or UUIDs of --gpus as the variable that hides the other GPUs, CUDA_VISIBLE_DEVICES. Throws
/// UsageError on what is no list, mixes numbers with UUIDs, or names a GPU twice.
Variable parse_gpus(const std::string& list);

/// The last value of a variable; nothing if it has none.
std::optional<std::string> find_variable(const std::vector<Variable>& variables,
                                         std::string_view name);

/// Reads lines `NAME=VALUE`; empty lines and lines that begin with # are skipped. Blanks around a
/// value are dropped, and so are quotes (`'` or `"`) around the whole value; nothing else has a
/// special meaning. Throws UsageError with `file:line:`, which shows no value, else
/// std::system_error.
std::vector<Variable> read_env_file(const std::string& file);
/// The same for the text of such a file.
std::vector<Variable> parse_env_file(std::string_view text, const std::string& name);

/// Shown in place of a value.
inline constexpr std::string_view kHiddenValue = "…";

/// The words of a command line with `…` for each value of --export.
std::vector<std::string> without_values(std::vector<std::string> command_line);
/// The same for variables.
std::vector<Variable> without_values(std::vector<Variable> variables);

}  // namespace dtool::cli
