// SPDX-License-Identifier: MIT
#include "cli/run/record_plan.h"

#include "killfiles/version.h"
#include "ssh/wire/check.h"

namespace dtool::cli {
namespace {

void add_hardware(const Checked& checked, RecordedMachine& machine) {
  if (!checked.reply) return;
  const host::CheckReply& reply = *checked.reply;
  machine.cores = reply.hardware.cores;
  machine.memory = reply.hardware.memory;
  machine.gpus = reply.hardware.gpus;
  machine.driver = reply.hardware.driver;
  machine.trainer = reply.trainer_version;
}

}  // namespace

void record_plan(const RunPlan& plan, const std::vector<Checked>& checked, RunRecord& record) {
  record.run_id = plan.run_id;
  record.chain = plan.chain;
  record.rerun_of = plan.rerun_of;
  record.what = plan.what;
  record.engine = plan.launcher;
  record.experiment = plan.experiment_toml;
  record.program = plan.program;
  record.seed = plan.seed;
  for (const auto& [name, value] : plan.variables) record.variables.push_back(name);
  record.environment = to_json(plan.environment);
  record.output_dir = plan.output_dir;
  record.gpus = plan.gpus;
  if (!plan.listener.empty()) record.listener = listener_of(plan);
  record.on_failure = plan.on_failure == OnFailure::stop ? "stop" : "leave";
  record.max_restarts = plan.max_restarts;
  record.dtool_version = killfiles::dtool_version();
  for (const MachinePlan& each : plan.machines) {
    RecordedMachine& machine = record.machines.emplace_back();
    machine.id = each.id;
    machine.host = ssh::to_string(each.host);
    machine.identity = each.identity;
    machine.code_folder = each.code_folder;
    machine.tree = each.tree;
    machine.output_folder = output_folder(plan, each);
    machine.processes = each.processes;
    machine.threads = each.threads;
    if (each.leader != Leader::screen) continue;  // it runs behind the host that was asked
    for (const Checked& host : checked) {
      if (host.result.host == each.host) add_hardware(host, machine);
    }
  }
}

}  // namespace dtool::cli
