// SPDX-License-Identifier: MIT
#include "cli/engines/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/engines/scheduler.h"
#include "cli/host_output.h"
#include "cli/plan/flags.h"
#include "ssh/host.h"

namespace dtool::cli {

Targets Engine::reach(const RunFlags& flags, const Settings& settings) const {
  if (auto chosen = choose_targets(flags.hosts, settings)) return *chosen;
  Targets targets;
  targets.hosts = {ssh::parse_host("local")};
  targets.slots.resize(1);
  return targets;
}

std::string Engine::started(const RunPlan& plan, const killfiles::Killfile& killfile) const {
  std::vector<ssh::Host> hosts;
  std::vector<std::string> names;
  for (const MachinePlan& machine : plan.machines) {
    hosts.push_back(machine.host);
    names.push_back(ssh::to_string(machine.host));
  }
  const std::string folded = fold_hosts(hosts);
  const bool hides_order = ssh::expand(folded) != names;
  return fmt::format("started on {}{}; {}, seed {}, rank 0 listens on {}", folded,
                     hides_order ? ", machine 0 on " + names.front() : "",
                     counted(static_cast<std::size_t>(plan.world_size), "process"),
                     plan.seed.value_or(0), killfile.listener);
}

std::vector<std::unique_ptr<Engine>> make_engines() {
  std::vector<std::unique_ptr<Engine>> engines;
  engines.push_back(make_ssh_engine());
  const auto request = std::make_shared<JobRequest>();
  engines.push_back(make_slurm_engine(request));
  engines.push_back(make_gridengine_engine(request));
  engines.push_back(make_mpi_engine());
  return engines;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const auto& each : make_engines()) names.emplace_back(each->name());
  return names;
}

std::unique_ptr<Engine> find_engine(std::string_view name) {
  for (auto& each : make_engines()) {
    if (each->name() == name) return std::move(each);
  }
  return nullptr;
}

std::string engine_title(std::string_view name) {
  const auto engine = find_engine(name);
  return engine ? std::string(engine->title()) : "";
}

const Engine& choose_engine(const std::vector<std::unique_ptr<Engine>>& engines,
                            const RunFlags& flags) {
  if (flags.run.engine.empty()) {
    const bool names_hosts = !flags.hosts.runs_on.empty() || !flags.hosts.hostfile.empty();
    const auto at_home =
        std::ranges::find_if(engines, [](const auto& each) { return each->is_at_home(); });
    return names_hosts || at_home == engines.end() ? *engines.front() : **at_home;
  }
  const auto found = std::ranges::find(engines, flags.run.engine,
                                       [](const auto& engine) { return engine->name(); });
  return **found;  // CLI11 has checked the name
}

void place_on_hosts(const Targets& targets, RunPlan& plan) {
  for (std::size_t i = 0; i < targets.hosts.size(); ++i) {
    MachinePlan machine;
    machine.id = static_cast<int>(i);
    machine.host = targets.hosts[i];
    plan.machines.push_back(machine);
  }
}

void take_trainer(const Checked& checked, MachinePlan& machine) {
  machine.trainer = checked.trainer;
  machine.pytorch = checked.pytorch;
}

namespace {

void set_processes(const RunFlags& flags, const Targets& targets,
                   const std::vector<Checked>& checked, RunPlan& plan) {
  const bool names_threads = std::ranges::any_of(
      plan.variables, [](const auto& each) { return each.first == "OMP_NUM_THREADS"; });
  for (std::size_t i = 0; i < plan.machines.size(); ++i) {
    MachinePlan& machine = plan.machines[i];
    if (flags.nproc_per_node != "auto") {
      machine.processes = parse_processes(flags.nproc_per_node);
    } else if (targets.slots[i]) {
      machine.processes = *targets.slots[i];
    } else {
      machine.processes = std::max(1, checked[i].gpus);
    }
    if (plan.program.empty()) take_trainer(checked[i], machine);
    const std::int64_t cores = checked[i].reply ? checked[i].reply->hardware.cores : 0;
    if (!plan.program.empty() && cores > 0 && !names_threads)
      machine.threads = std::max(1, static_cast<int>(cores) / std::max(1, machine.processes));
  }
  number_ranks(plan);
}

}  // namespace

bool complete_from_hosts(Console& console, const RunFlags& flags, const Targets& targets,
                         const std::vector<Checked>& checked, RunPlan& plan) {
  set_processes(flags, targets, checked, plan);
  if (plan.address.empty())
    plan.address = plan.machines.size() == 1 ? "127.0.0.1" : checked[0].address;
  if (plan.port == 0) plan.port = checked[0].port;
  const std::vector<ssh::Host> cut = cut_off(plan.address, checked);
  if (cut.empty()) return true;
  const std::string first = ssh::to_string(targets.hosts.front());
  console.fail(fmt::format("rank 0 on {} would listen on {}, where {} cannot reach it", first,
                           plan.address, fold_hosts(cut)),
               fmt::format("name another host first in --runs_on, or another address of {}: "
                           "--distributed_ip_and_port IP:PORT",
                           first));
  return false;
}

}  // namespace dtool::cli
