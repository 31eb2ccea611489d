// What runs where: a run's machines, ranks and variables, and the script each machine runs. Pure:
// nothing is reached.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/run/environment/environment.h"
#include "killfiles/host_identity.h"
#include "ssh/host.h"
#include "ssh/job/screen_job.h"

namespace dtool::cli {

/// What leads a machine's processes: a screen session of dtool's, or something that a launcher
/// uses.
enum class Leader { screen, other };

/// One machine's part. Paths are on the host, absolute or from `~/`.
struct MachinePlan {
  int id = 0;
  ssh::Host host;
  std::string code_folder;
  int processes = 1;    ///< of the program or the trainer
  int first_rank = 0;   ///< of its local rank 0
  std::string trainer;  ///< the bundled trainer there; empty: the user's program is run
  Leader leader = Leader::screen;
  std::string part;  ///< of a run that is several: its folder in the run's own; empty: all of it
  killfiles::HostIdentity identity = {};  ///< of the host, where its session will run there
  ssh::Host peer;  ///< as machine 0's own ssh reaches it, where a launcher uses that
};

/// What becomes of the other machines' processes when one machine's fail.
enum class OnFailure { stop, leave };

struct RunPlan {
  std::string run_id;
  std::string launcher;  ///< its name
  std::uint64_t seed = 0;
  std::string listener;  ///< address of machine 0 that the others reach; empty: known once it runs
  std::uint16_t port = 0;
  int world_size = 0;  ///< 0: not known before the hosts were looked at
  OnFailure on_failure = OnFailure::stop;
  int max_restarts = 0;                 ///< of the whole run, after a failure
  std::chrono::seconds lost_after{60};  ///< without a sign of life a machine has failed
  std::uint16_t coordinator_port = 0;   ///< where machine 0 hears how the others do; 0: nobody asks
  std::string token;                    ///< what a machine must know to be heard
  std::vector<std::string>
      program;  ///< the user's program and its arguments; empty: the bundled trainer
  std::string experiment_toml;  ///< empty: none
  std::string git_commit;       ///< of the code that is sent; empty: not known
  Environment environment;      ///< what the processes find on a host
  std::string output_dir;       ///< relative to the code folder, absolute, or from `~/`
  std::vector<std::pair<std::string, std::string>> variables;  ///< from the settings and --export
  std::vector<MachinePlan> machines;
  std::vector<std::string> networks;  ///< between machine 0 and the others (CIDR), where known
};

/// Gives each machine its first rank, and the run its world size.
void number_ranks(RunPlan& plan);

/// What a run of that program is called: its file's name; with Python the script's or the module's.
std::string name_of_program(const std::vector<std::string>& program);

/// `IP:PORT` of rank 0, `[v6::addr]:PORT` for IPv6.
std::string listener_of(const RunPlan& plan);

/// `IP:PORT` where the machines report how they do; empty if none listens.
std::string coordinator_of(const RunPlan& plan);

/// The run's own folder under the output folder, on the first machine.
std::string run_output_folder(const RunPlan& plan);

/// The machine's part of it, there.
std::string output_folder(const RunPlan& plan, const MachinePlan& machine);

/// What the job of the machine is called: run id, session, state folder, log.
ssh::ScreenJob name_job(const RunPlan& plan, const MachinePlan& machine);

/// What the scripts of a machine's processes want to have defined before
/// (cli/run/environment/scripts/environment.sh).
std::string script_variables(const RunPlan& plan, const MachinePlan& machine);

}  // namespace dtool::cli
