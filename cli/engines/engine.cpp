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
#include "cli/scripts.h"
#include "ssh/host.h"
#include "ssh/host/session/supervision.h"

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

void Engine::place(const RunFlags& /*flags*/, const Targets& targets, RunPlan& plan) const {
  for (std::size_t i = 0; i < targets.hosts.size(); ++i) {
    MachinePlan machine;
    machine.id = static_cast<int>(i);
    machine.host = targets.hosts[i];
    plan.machines.push_back(machine);
  }
}

void Engine::add_needs(const RunPlan& plan, Needs& needs) const {
  needs.is_supervised = has_coordinator(plan);
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

bool Engine::complete(Console& console, const RunFlags& flags, const Targets& targets,
                      const std::vector<Checked>& checked, RunPlan& plan) const {
  if (has_coordinator(plan)) plan.coordinator_port = checked[0].coordinator_port;
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

namespace {

/// dtool as its own engine: it starts a screen session on each host over SSH, and the run's own
/// supervision watches the sessions.
class SshEngine : public Engine {
 public:
  std::string_view name() const override { return "ssh"; }

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

}  // namespace dtool::cli
