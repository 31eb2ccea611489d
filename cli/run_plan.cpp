#include "cli/run_plan.h"

#include <fmt/format.h>

#include <cctype>
#include <chrono>
#include <cstdlib>

#include "cli/action.h"
#include "cli/jobs.h"
#include "cli/scripts.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

std::string assign(std::string_view name, std::string_view value) {
  return fmt::format("{}={}\n", name, ssh::quote(value));
}

std::string assign_path(std::string_view name, std::string_view path) {
  return fmt::format("{}={}\n", name, path.empty() ? "''" : ssh::quote_path(path));
}

std::string assign_array(std::string_view name, const std::vector<std::string>& values) {
  return fmt::format("{}=({})\n", name, ssh::quote_all(values));
}

std::string address_and_port(const std::string& address, std::uint16_t port) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(is_v6 ? "[{}]:{}" : "{}:{}"), address, port);
}

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

bool is_variable_name(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) return false;
  for (const char each : name) {
    if (std::isalnum(static_cast<unsigned char>(each)) == 0 && each != '_') return false;
  }
  return true;
}

}  // namespace

void number_ranks(RunPlan& plan) {
  plan.world_size = 0;
  for (MachinePlan& machine : plan.machines) {
    machine.first_rank = plan.world_size;
    plan.world_size += machine.processes;
  }
}

std::string listener_of(const RunPlan& plan) {
  return address_and_port(plan.listener, plan.port);
}

std::string coordinator_of(const RunPlan& plan) {
  return plan.coordinator_port == 0 ? "" : address_and_port(plan.listener, plan.coordinator_port);
}

std::string output_folder(const RunPlan& plan, const MachinePlan& machine) {
  const bool is_relative = !plan.output_dir.starts_with('/') && !plan.output_dir.starts_with("~/");
  const std::string base =
      is_relative ? machine.code_folder + "/" + plan.output_dir : plan.output_dir;
  return base + "/" + plan.run_id;
}

ssh::ScreenJob name_job(const RunPlan& plan, const MachinePlan& machine) {
  ssh::ScreenJob job;
  job.run_id = plan.run_id;
  job.session = fmt::format("dtool_{}_machine{}", plan.run_id, machine.id);
  job.state_folder = state_folder(plan.run_id, machine.id);
  job.log = fmt::format("{}/machine{}.log", output_folder(plan, machine), machine.id);
  return job;
}

ssh::ScreenJob make_job(const RunPlan& plan, const MachinePlan& machine) {
  ssh::ScreenJob job = name_job(plan, machine);
  std::vector<std::string> processes;
  for (const MachinePlan& each : plan.machines) processes.push_back(std::to_string(each.processes));
  job.script = assign_path("code", machine.code_folder) + assign_path("activate", plan.activate) +
               assign_path("output", output_folder(plan, machine)) +
               assign("listener", plan.listener) + assign("port", std::to_string(plan.port)) +
               assign("listener_and_port", listener_of(plan)) +
               assign("place", std::to_string(machine.id)) +
               assign_array("processes_of", processes) + assign("seed", std::to_string(plan.seed)) +
               assign("max_restarts", std::to_string(plan.max_restarts)) +
               assign("trainer", machine.trainer) + assign_array("program", plan.program);
  job.script += "export_variables() {\n  :\n";
  for (const auto& [name, value] : plan.variables)
    job.script += fmt::format("  export {}={}\n", name, ssh::quote(value));
  job.script += "}\n";
  job.script += scripts::kNumbers_ssh;
  job.script += scripts::kEnvironment;
  job.script += scripts::kLaunch;
  if (!plan.experiment_toml.empty())
    job.files.emplace_back("experiment.toml", plan.experiment_toml);
  job.beginning = ssh::Beginning::told;
  if (plan.on_failure == OnFailure::stop) add_supervision(plan, machine, job);
  return job;
}

std::pair<std::string, std::string> parse_export(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (!is_variable_name(name)) {
    throw UsageError(
        fmt::format("--export: {} is not the name of a variable", name.empty() ? "''" : name));
  }
  if (name.starts_with("DTOOL_") && name != "DTOOL_MNIST_DIR") {
    throw UsageError(fmt::format("--export: {} is dtool's own to set", name));
  }
  if (equals != text.npos) return {name, text.substr(equals + 1)};
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) {
    throw UsageError(fmt::format("--export: {} is not set here", name),
                     fmt::format("give it a value: --export {}=…", name));
  }
  return {name, value};
}

}  // namespace dtool::cli
