#include "cli/run_plan.h"

#include <fmt/format.h>

#include <cctype>
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

/// The trainer's command line, or the user's; shell text for an array.
std::string command_words(const RunPlan& plan, const MachinePlan& machine) {
  if (machine.trainer.empty()) return ssh::quote_all(plan.program);
  const std::vector<std::string> flags = {"--machine_id",
                                          std::to_string(machine.id),
                                          "--distributed_nodes",
                                          std::to_string(plan.machines.size()),
                                          "--nproc_per_node",
                                          std::to_string(machine.processes),
                                          "--distributed_ip_and_port",
                                          listener_of(plan),
                                          "--seed",
                                          std::to_string(plan.seed)};
  return fmt::format("{} \"$PWD/experiment.toml\" {} --output_dir \"$output\"",
                     ssh::quote(machine.trainer), ssh::quote_all(flags));
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
  const bool is_v6 = plan.listener.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(is_v6 ? "[{}]:{}" : "{}:{}"), plan.listener, plan.port);
}

std::string output_folder(const RunPlan& plan, const MachinePlan& machine) {
  const bool is_relative = !plan.output_dir.starts_with('/') && !plan.output_dir.starts_with("~/");
  const std::string base =
      is_relative ? machine.code_folder + "/" + plan.output_dir : plan.output_dir;
  return base + "/" + plan.run_id;
}

ssh::ScreenJob make_job(const RunPlan& plan, const MachinePlan& machine) {
  ssh::ScreenJob job;
  job.run_id = plan.run_id;
  job.session = fmt::format("dtool_{}_machine{}", plan.run_id, machine.id);
  job.state_folder = state_folder(plan.run_id, machine.id);
  job.log = fmt::format("{}/machine{}.log", output_folder(plan, machine), machine.id);
  job.script = assign_path("code", machine.code_folder) + assign_path("activate", plan.activate) +
               assign_path("output", output_folder(plan, machine)) +
               assign("listener", plan.listener) + assign("port", std::to_string(plan.port)) +
               assign("machine_id", std::to_string(machine.id)) +
               assign("machines", std::to_string(plan.machines.size())) +
               assign("processes", std::to_string(machine.processes)) +
               assign("first_rank", std::to_string(machine.first_rank)) +
               assign("world_size", std::to_string(plan.world_size)) +
               assign("seed", std::to_string(plan.seed)) + assign("trainer", machine.trainer);
  job.script += "export_variables() {\n  :\n";
  for (const auto& [name, value] : plan.variables)
    job.script += fmt::format("  export {}={}\n", name, ssh::quote(value));
  job.script += fmt::format("}}\ncommand=({})\n", command_words(plan, machine));
  job.script += scripts::kLaunch;
  if (!plan.experiment_toml.empty())
    job.files.emplace_back("experiment.toml", plan.experiment_toml);
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
