// What starts a run's processes on its machines: dtool itself, or something that a cluster has. One
// file a launcher, and a line in launcher.cpp; `dtool run` asks for the rest through this
// interface. Who watches, follows and ends a run asks no launcher: the run's state folders tell
// them how (ssh/job/screen_job.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/jobs.h"
#include "cli/run/check.h"
#include "cli/run/flags.h"
#include "cli/run/plan.h"
#include "cli/settings.h"
#include "killfiles/killfile.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dtool::cli {

class Launcher {
 public:
  virtual ~Launcher() = default;

  /// As --launcher takes it; and the title of its own flags in the help text.
  virtual std::string_view name() const = 0;
  virtual std::string_view title() const { return ""; }

  /// Whether dtool runs where this launcher alone makes sense: inside a job of its scheduler.
  virtual bool is_at_home() const { return false; }

  /// Adds the flags that go with this launcher, and answers with all of them: a launcher before it
  /// may have added some. With a launcher that does not have them they are refused.
  virtual std::vector<CLI::Option*> add_options(CLI::App& /*app*/) { return {}; }

  /// The hosts that dtool reaches. Throws UsageError, std::invalid_argument.
  virtual Targets reach(const RunFlags& flags, const Settings& settings) const;

  /// Gives the plan its machines, with their hosts, and how many processes each has where that is
  /// known already. Throws UsageError on flags that do not go with this launcher.
  virtual void place(const RunFlags& flags, const Targets& targets, RunPlan& plan) const = 0;

  /// Adds what it wants of the hosts.
  virtual void add_needs(const RunPlan& /*plan*/, Needs& /*needs*/) const {}

  /// Completes the plan with what only the hosts could tell. False if they do not fit together:
  /// it has said why.
  virtual bool complete(Console& console, const RunFlags& flags, const Targets& targets,
                        const std::vector<Checked>& checked, RunPlan& plan) const = 0;

  /// Where rank 0 listens if nobody says where, for --dry_run.
  virtual std::string_view usual_listener() const {
    return "the first machine, a port that is free there";
  }

  /// Texts that are the launcher's own, with their titles, for --dry_run.
  virtual std::vector<std::pair<std::string, std::string>> texts(const RunPlan& /*plan*/) const {
    return {};
  }

  /// What is started. Where one does not start, the others are ended again.
  virtual std::vector<HostJob> jobs(const RunPlan& plan) const = 0;

  /// One sentence, behind the run's id, on what was started.
  virtual std::string started(const RunPlan& plan, const killfiles::Killfile& killfile) const;
};

/// All launchers, the first the one that is taken where nothing speaks for another.
std::vector<std::unique_ptr<Launcher>> make_launchers();

/// The names of all, in order.
std::vector<std::string> launcher_names();

/// The title of the launcher of that name; empty if it has none.
std::string launcher_title(std::string_view name);

/// `--launcher` as given; where it was not, the one whose surroundings dtool runs in. Throws
/// UsageError.
const Launcher& choose_launcher(const std::vector<std::unique_ptr<Launcher>>& launchers,
                                const RunFlags& flags);

// For launchers that have a machine on each host:

/// A machine on each of the targets' hosts.
void place_on_hosts(const Targets& targets, RunPlan& plan);

/// The machines' processes as flags, slots and the hosts' GPUs say, their ranks, the trainer's
/// places, and the address and port of rank 0.
void complete_from_hosts(const RunFlags& flags, const Targets& targets,
                         const std::vector<Checked>& checked, RunPlan& plan);

}  // namespace dtool::cli
