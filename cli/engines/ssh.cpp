// SPDX-License-Identifier: MIT
// dtool as its own engine: it starts a screen session on each host over SSH, and the run's own
// supervision watches the sessions.
#include "cli/engines/engine.h"
#include "cli/scripts.h"
#include "ssh/host/session/supervision.h"

namespace dtool::cli {

namespace {

class SshEngine : public Engine {
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

std::unique_ptr<Engine> make_ssh_engine() {
  return std::make_unique<SshEngine>();
}

namespace {

/// The settings of the machine's session (ssh/host/session/supervision.h).
host::Supervision supervision(const RunPlan& plan, const MachinePlan& machine) {
  host::Supervision settings;
  settings.place = machine.id;
  settings.host = ssh::to_string(machine.host);
  settings.places = static_cast<int>(plan.machines.size());
  settings.max_restarts = plan.max_restarts;
  settings.lost_after = std::chrono::seconds(plan.lost_after.value_or(killfiles::kUsualLostAfter));
  settings.address = plan.address;
  settings.port = plan.coordinator_port;
  if (machine.id != 0) return settings;
  settings.ends_with = plan.ends_with;
  // Told to this machine alone: all names to all machines would grow with their number squared.
  for (const MachinePlan& each : plan.machines) settings.hosts.push_back(ssh::to_string(each.host));
  return settings;
}

}  // namespace

bool has_coordinator(const RunPlan& plan) {
  return plan.on_failure == RunPlan::kStop && plan.machines.size() > 1;
}

void place_coordinator(const std::vector<Checked>& checked, RunPlan& plan) {
  if (has_coordinator(plan)) plan.coordinator_port = checked[0].coordinator_port;
}

ssh::ScreenJob make_supervised_job(const RunPlan& plan, const MachinePlan& machine,
                                   const std::vector<std::string_view>& parts) {
  ssh::ScreenJob job = name_job(plan, machine);
  job.script = script_variables(plan, machine);
  for (const std::string_view part : parts) job.script.append(part);
  if (!plan.experiment.empty()) job.files.emplace_back("experiment.toml", plan.experiment);
  if (plan.world_size > 1 || plan.machines.size() > 1) job.files.emplace_back("token", plan.token);
  job.beginning = ssh::Beginning::told;
  if (plan.on_failure == RunPlan::kStop)
    job.files.emplace_back("supervise", host::to_text(supervision(plan, machine)));
  return job;
}

}  // namespace dtool::cli
