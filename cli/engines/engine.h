// SPDX-License-Identifier: MIT
// What starts a run's processes on its machines: dtool itself, or a tool of the cluster. Each
// engine has its own file, and a line in engine.cpp; `dtool run` needs only this interface.
// Commands that watch, follow or end a run do not ask the engine: the run's state folders tell
// them how (ssh/screen_job.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/options.h"
#include "cli/plan/flags.h"
#include "cli/plan/plan.h"
#include "cli/ready/check_hosts.h"
#include "cli/ready/start_jobs.h"
#include "cli/settings.h"
#include "killfiles/killfile.h"
#include "ssh/screen_job.h"

namespace dtool::cli {

class Engine {
 public:
  virtual ~Engine() = default;

  /// The name for --launcher, and the title of its own flags in the help text.
  virtual std::string_view name() const = 0;
  virtual std::string_view title() const { return ""; }

  /// Whether dtool runs inside a job of this engine's scheduler.
  virtual bool is_at_home() const { return false; }

  /// Adds this engine's flags, and returns all of them: an earlier engine may have added some.
  /// A flag that the chosen engine does not have is refused.
  virtual std::vector<Option> add_options(Options& /*command*/) { return {}; }

  /// The hosts that dtool reaches. Throws UsageError, std::invalid_argument.
  virtual Targets reach(const RunFlags& flags, const Settings& settings) const;

  /// Gives the plan its machines with their hosts, and their process counts if known already: a
  /// machine on each of the targets' hosts. Throws UsageError on flags that do not go with this
  /// engine.
  virtual void place(const RunFlags& flags, const Targets& targets, RunPlan& plan) const;

  /// Adds what this engine needs on the hosts: a session on each that watches the others.
  virtual void add_needs(const RunPlan& plan, Needs& needs) const;

  /// Completes the plan with what only the hosts could tell: with a machine on each, its processes
  /// from flags, slots and its GPUs; then their ranks, the trainer's paths, the supervision's port,
  /// and the address and port of rank 0. False if the answers do not fit together, as where some
  /// machine cannot reach that address; the reason has been printed.
  virtual bool complete(Console& console, const RunFlags& flags, const Targets& targets,
                        const std::vector<Checked>& checked, RunPlan& plan) const;

  /// Where rank 0 listens without a flag, for --dry_run.
  virtual std::string_view usual_listener() const {
    return "the first machine, a port that is free there";
  }

  /// Texts of this engine with their titles, for --dry_run.
  virtual std::vector<std::pair<std::string, std::string>> texts(const RunPlan& /*plan*/) const {
    return {};
  }

  /// The jobs to start. If one does not start, the others are ended again.
  virtual std::vector<HostJob> jobs(const RunPlan& plan) const = 0;

  /// One sentence, printed after the run's id, that says what was started.
  virtual std::string started(const RunPlan& plan, const killfiles::Killfile& killfile) const;

  /// What finds the nodes of a job from the host that dtool reaches; empty: dtool reaches all.
  virtual std::string way_to_nodes(const std::string& /*job*/) const { return ""; }
};

/// All engines; the first is the default.
std::vector<std::unique_ptr<Engine>> make_engines();

/// The names of all, in order.
std::vector<std::string> engine_names();

/// The engine of that name; nullptr if there is none.
std::unique_ptr<Engine> find_engine(std::string_view name);

/// Its title; empty if there is none.
std::string engine_title(std::string_view name);

/// The engine of `--launcher`; without the flag, the one whose job dtool runs in. Throws
/// UsageError.
const Engine& choose_engine(const std::vector<std::unique_ptr<Engine>>& engines,
                            const RunFlags& flags);

/// Gives a machine the trainer that was found on a host.
void take_trainer(const Checked& checked, MachinePlan& machine);

// Parts shared by the engines whose runs a session on each machine watches
// (ssh/host/session/session.h).

/// Whether machine 0 listens for the others: there are others, and their failures matter.
bool has_coordinator(const RunPlan& plan);

/// A machine's job: the variables for environment.sh, then the scripts `parts` in order; with the
/// experiment and, unless failures are left alone, the supervision.
ssh::ScreenJob make_supervised_job(const RunPlan& plan, const MachinePlan& machine,
                                   const std::vector<std::string_view>& parts);

// The functions that make the engines. A new engine adds a line here and one in engine.cpp.

/// dtool itself, over SSH: a screen session per machine, watched by the run's own supervision.
std::unique_ptr<Engine> make_ssh_engine();

struct JobRequest;

/// Slurm: a job that sbatch accepts on a login host. Schedulers share `request` because they share
/// flags.
std::unique_ptr<Engine> make_slurm_engine(std::shared_ptr<JobRequest> request);

/// Grid Engine: a job that qsub accepts on a submit host.
std::unique_ptr<Engine> make_gridengine_engine(std::shared_ptr<JobRequest> request);

/// Open MPI's mpirun on machine 0, which reaches the other machines by its own ssh. Sessions as
/// with ssh watch its processes.
std::unique_ptr<Engine> make_mpi_engine();

}  // namespace dtool::cli
