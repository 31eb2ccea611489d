// SPDX-License-Identifier: MIT
#include "cli/run/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/host_output.h"
#include "cli/record/recorded.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

/// What both documents of `dtool run` have.
nlohmann::json json_of_start(const RunPlan& plan) {
  nlohmann::json document = to_json(static_cast<const killfiles::Run&>(plan));
  document["launcher"] = plan.engine;  // its name here from the beginning
  document["environment"] = to_json(plan.environment);
  return document;
}

nlohmann::json plan_as_json(const RunPlan& plan, const Engine& engine, const OpenQuestions& open) {
  nlohmann::json machines = nlohmann::json::array();
  for (const MachinePlan& machine : plan.machines) {
    machines.push_back({{"id", machine.id},
                        {"host", ssh::to_string(machine.host)},
                        {"code_folder", machine.code_folder},
                        {"tree", machine.tree},
                        {"output_folder", output_folder(plan, machine)}});
  }
  nlohmann::json scripts = nlohmann::json::array();
  for (const HostJob& each : engine.jobs(plan)) scripts.push_back(each.job.script);
  nlohmann::json document = json_of_start(plan);
  document.update({{"distributed_ip_and_port", open.listener},
                   {"sends_code", !open.code.empty()},
                   {"machines", machines},
                   {"scripts", scripts}});
  for (const auto& [title, text] : engine.texts(plan)) document["texts"][title] = text;
  return document;
}

/// Where a scheduler places them, their number is part of the question that is put to it.
std::string processes_of(const RunPlan& plan, const OpenQuestions& open) {
  if (plan.world_size == 0) {
    return open.nproc_per_node == "auto"
               ? "a machine's slots in the hostfile, else its GPUs, else 1"
               : open.nproc_per_node + " a machine";
  }
  std::vector<int> counts;
  for (const MachinePlan& machine : plan.machines) counts.push_back(machine.processes);
  const bool is_even = std::ranges::all_of(counts, [&](int each) { return each == counts[0]; });
  return is_even ? fmt::format("{} a machine", counts[0])
                 : fmt::format("{}", fmt::join(counts, ", "));
}

/// The --json document of a started run.
nlohmann::json describe_run(const RunPlan& plan, const killfiles::Killfile& killfile) {
  nlohmann::json machines = nlohmann::json::array();
  for (std::size_t i = 0; i < killfile.machines.size(); ++i) {
    const killfiles::Machine& machine = killfile.machines[i];
    machines.push_back({{"id", machine.id},
                        {"host", machine.host},
                        {"session", machine.session},
                        {"log", machine.log},
                        {"output_folder", machine.output_folder},
                        {"tree", plan.machines[i].tree},
                        {"processes", plan.machines[i].processes},
                        {"first_rank", plan.machines[i].first_rank}});
  }
  nlohmann::json document = json_of_start(plan);
  document.update({{"killfile", killfiles::path_of(killfile_folder(), killfile.run_id).string()},
                   {"job", killfile.job},
                   {"coordinator", killfile.coordinator},
                   {"world_size", plan.world_size},
                   {"machines", machines}});
  return document;
}

}  // namespace

void show_plan(Console& console, const RunPlan& plan, const Engine& engine,
               const OpenQuestions& open) {
  if (console.json()) {
    console.document(plan_as_json(plan, engine, open));
    return;
  }
  const bool is_trainer = plan.program.empty();
  const auto row = [&console](std::string_view name, std::string_view value) {
    console.say(
        fmt::format("{}  {}", console.styled(Style::bold, fmt::format("{:<10}", name)), value));
  };
  row("run id", plan.run_id + "  (a new one each time)");
  row("runs",
      is_trainer ? "dtool-trainer with the experiment " + plan.what : ssh::quote_all(plan.program));
  for (const auto& [field, value, usual] : killfiles::tell_unusual(plan)) row(field.shown, value);
  row("listener", open.listener == "auto" ? engine.usual_listener() : open.listener);
  row("processes", processes_of(plan, open));
  if (!open.code.empty()) row("sends", open.code);
  for (const auto& [name, value] : rows_of(plan.environment)) row(name, value);
  for (const auto& [name, value] : plan.variables)
    row("exports", fmt::format("{}={}", name, value));
  for (const MachinePlan& machine : plan.machines) {
    row(fmt::format("machine {}", machine.id),
        fmt::format("{}: code in {}, output in {}", ssh::to_string(machine.host),
                    machine.code_folder, output_folder(plan, machine)));
  }
  for (const auto& [title, text] : engine.texts(plan))
    console.say("\n" + console.styled(Style::bold, title) + "\n" + text);
}

bool RunReport::all_well(const std::vector<ssh::HostResult>& results, std::string_view doing) {
  for (const ssh::HostResult& result : results) {
    if (!result.ok()) failures_.push_back(result);
  }
  return report_failures(console_, results, doing) == 0;
}

int RunReport::end(nlohmann::json document, int exit_code) const {
  nlohmann::json failures = nlohmann::json::array();
  for (const ssh::HostResult& result : failures_) failures.push_back(to_json(result));
  document.update({{"run_id", run_id_}, {"exit_code", exit_code}, {"failures", failures}});
  if (!cause_.empty()) document["cause"] = cause_;
  if (console_.json()) console_.document(document);
  return exit_code;
}

int RunReport::end(int exit_code) const {
  return end(nlohmann::json::object(), exit_code);
}

int RunReport::end(const RunPlan& plan, const killfiles::Killfile& killfile, int exit_code) const {
  return end(describe_run(plan, killfile), exit_code);
}

}  // namespace dtool::cli
