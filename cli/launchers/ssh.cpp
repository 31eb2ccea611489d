// SPDX-License-Identifier: MIT
// dtool as its own launcher: it starts a screen session on each host over SSH, and the run's own
// supervision watches the sessions.
#include "cli/launchers/all.h"
#include "cli/launchers/supervised.h"
#include "cli/scripts.h"

namespace dtool::cli {
namespace {

class SshLauncher : public Launcher {
 public:
  std::string_view name() const override { return "ssh"; }

  void place(const RunFlags&, const Targets& targets, RunPlan& plan) const override {
    place_on_hosts(targets, plan);
  }

  void add_needs(const RunPlan& plan, Needs& needs) const override {
    needs.is_supervised = has_coordinator(plan);
  }

  bool complete(Console& console, const RunFlags& flags, const Targets& targets,
                const std::vector<Checked>& checked, RunPlan& plan) const override {
    place_coordinator(checked, plan);
    return complete_from_hosts(console, flags, targets, checked, plan);
  }

  std::vector<HostJob> jobs(const RunPlan& plan) const override {
    std::vector<HostJob> jobs;
    for (const MachinePlan& machine : plan.machines)
      jobs.push_back({jobs.size(), make_supervised_job(plan, machine,
                                                       {scripts::kNumbers_ssh,
                                                        scripts::kEnvironment, scripts::kLaunch})});
    return jobs;
  }
};

}  // namespace

std::unique_ptr<Launcher> make_ssh_launcher() {
  return std::make_unique<SshLauncher>();
}

}  // namespace dtool::cli
