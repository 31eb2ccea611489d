// SPDX-License-Identifier: MIT
#include "cli/launchers/supervised.h"

#include "ssh/host/session/supervision.h"

namespace dtool::cli {
namespace {

/// The settings of the machine's session (ssh/host/session/supervised_session.h).
host::Supervision supervision(const RunPlan& plan, const MachinePlan& machine) {
  host::Supervision settings;
  settings.place = machine.id;
  settings.host = ssh::to_string(machine.host);
  settings.places = static_cast<int>(plan.machines.size());
  settings.max_restarts = plan.max_restarts;
  settings.lost_after = plan.lost_after;
  settings.address = plan.listener;
  settings.port = plan.coordinator_port;
  if (machine.id != 0) return settings;
  settings.ends_with = plan.ends_with;
  // Told to this machine alone: all names to all machines would grow with their number squared.
  for (const MachinePlan& each : plan.machines) settings.hosts.push_back(ssh::to_string(each.host));
  return settings;
}

}  // namespace

bool has_coordinator(const RunPlan& plan) {
  return plan.on_failure == OnFailure::stop && plan.machines.size() > 1;
}

void place_coordinator(const std::vector<Checked>& checked, RunPlan& plan) {
  if (has_coordinator(plan)) plan.coordinator_port = checked[0].coordinator_port;
}

ssh::ScreenJob make_supervised_job(const RunPlan& plan, const MachinePlan& machine,
                                   const std::vector<std::string_view>& parts) {
  ssh::ScreenJob job = name_job(plan, machine);
  job.script = script_variables(plan, machine);
  for (const std::string_view part : parts) job.script.append(part);
  if (!plan.experiment_toml.empty())
    job.files.emplace_back("experiment.toml", plan.experiment_toml);
  if (plan.world_size > 1 || plan.machines.size() > 1) job.files.emplace_back("token", plan.token);
  job.beginning = ssh::Beginning::told;
  if (plan.on_failure == OnFailure::stop)
    job.files.emplace_back("supervise", host::to_text(supervision(plan, machine)));
  return job;
}

}  // namespace dtool::cli
