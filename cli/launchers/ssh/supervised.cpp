#include "cli/launchers/ssh/supervised.h"

#include <chrono>

#include "cli/run/environment/assignments.h"
#include "cli/scripts.h"
#include "ssh/scripts.h"

namespace dtool::cli {
namespace {

/// What the machine's session does: on machine 0 it coordinates the run as well.
std::string supervision(const RunPlan& plan, const MachinePlan& machine) {
  std::string text =
      assign("place", std::to_string(machine.id)) + assign("host", ssh::to_string(machine.host)) +
      assign("places", std::to_string(plan.machines.size())) + assign("trainer", machine.trainer) +
      assign("max_restarts", std::to_string(plan.max_restarts)) +
      assign("coordinator_address", plan.listener) +
      assign("coordinator_port", std::to_string(plan.coordinator_port));
  text.append(scripts::kWords).append(scripts::kSupervise);
  if (machine.id == 0) {
    // Told to this machine alone: all names to all machines would grow with their number squared.
    std::vector<std::string> names;
    for (const MachinePlan& each : plan.machines) names.push_back(ssh::to_string(each.host));
    text += assign_array("hosts", names);
    text += scripts::kCoordinate;
  }
  return text + "supervise\n";
}

void add_supervision(const RunPlan& plan, const MachinePlan& machine, ssh::ScreenJob& job) {
  constexpr std::chrono::seconds kGrace{3};
  job.files.emplace_back("supervise", supervision(plan, machine));
  job.files.emplace_back("end_processes", ssh::end_processes_script(plan.run_id, kGrace));
  if (plan.machines.size() == 1) return;
  if (machine.id != 0) {
    std::string report(scripts::kWords);
    job.files.emplace_back("report", report.append(scripts::kReport));
    return;
  }
  std::string perl(ssh::scripts::kListen_perl);
  job.files.emplace_back("take_reports.perl", perl.append(scripts::kTake_reports_perl));
  std::string python(ssh::scripts::kListen_python);
  job.files.emplace_back("take_reports.python3", python.append(scripts::kTake_reports_python));
}

}  // namespace

void place_coordinator(const std::vector<Checked>& checked, RunPlan& plan) {
  if (plan.on_failure == OnFailure::stop && plan.machines.size() > 1)
    plan.coordinator_port = checked[0].coordinator_port;
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
  if (plan.on_failure == OnFailure::stop) add_supervision(plan, machine, job);
  return job;
}

}  // namespace dtool::cli
