// dtool as its own launcher: a screen session on each host, started over SSH, and watched by the
// run's own supervision.
#include <chrono>

#include "cli/assignments.h"
#include "cli/launchers/all.h"
#include "cli/scripts.h"

namespace dtool::cli {
namespace {

/// What the machine's session does: on machine 0 it coordinates the run as well.
std::string supervision(const RunPlan& plan, const MachinePlan& machine) {
  std::vector<std::string> names;
  for (const MachinePlan& each : plan.machines) names.push_back(ssh::to_string(each.host));
  std::string text = assign("place", std::to_string(machine.id)) + assign_array("hosts", names) +
                     assign("trainer", machine.trainer) +
                     assign("max_restarts", std::to_string(plan.max_restarts)) +
                     assign("coordinator_address", plan.listener) +
                     assign("coordinator_port", std::to_string(plan.coordinator_port));
  text += scripts::kSupervise;
  if (machine.id == 0) text += scripts::kCoordinate;
  return text + "supervise\n";
}

void add_supervision(const RunPlan& plan, const MachinePlan& machine, ssh::ScreenJob& job) {
  constexpr std::chrono::seconds kGrace{3};
  job.files.emplace_back("supervise", supervision(plan, machine));
  job.files.emplace_back("end_processes", ssh::end_processes_script(plan.run_id, kGrace));
  if (plan.machines.size() == 1) return;
  job.files.emplace_back("token", plan.token);
  if (machine.id != 0) {
    job.files.emplace_back("report", scripts::kReport);
    return;
  }
  job.files.emplace_back("take_reports.perl", scripts::kTake_reports_perl);
  job.files.emplace_back("take_reports.python3", scripts::kTake_reports_python);
}

ssh::ScreenJob make_job(const RunPlan& plan, const MachinePlan& machine) {
  ssh::ScreenJob job = name_job(plan, machine);
  job.script = script_variables(plan, machine);
  job.script.append(scripts::kNumbers_ssh).append(scripts::kEnvironment).append(scripts::kLaunch);
  if (!plan.experiment_toml.empty())
    job.files.emplace_back("experiment.toml", plan.experiment_toml);
  job.beginning = ssh::Beginning::told;
  if (plan.on_failure == OnFailure::stop) add_supervision(plan, machine, job);
  return job;
}

class SshLauncher : public Launcher {
 public:
  std::string_view name() const override { return "ssh"; }

  void place(const RunFlags&, const Targets& targets, RunPlan& plan) const override {
    place_on_hosts(targets, plan);
  }

  bool complete(Console& console, const RunFlags& flags, const Targets& targets,
                const std::vector<Checked>& checked, RunPlan& plan) const override {
    if (plan.on_failure == OnFailure::stop && plan.machines.size() > 1)
      plan.coordinator_port = checked[0].coordinator_port;
    return complete_from_hosts(console, flags, targets, checked, plan);
  }

  std::vector<HostJob> jobs(const RunPlan& plan) const override {
    std::vector<HostJob> jobs;
    for (const MachinePlan& machine : plan.machines)
      jobs.push_back({jobs.size(), make_job(plan, machine)});
    return jobs;
  }
};

}  // namespace

std::unique_ptr<Launcher> make_ssh_launcher() {
  return std::make_unique<SshLauncher>();
}

}  // namespace dtool::cli
