// SPDX-License-Identifier: MIT
#include "cli/launchers/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/action.h"
#include "cli/assignments.h"
#include "cli/failures.h"
#include "cli/flag_values.h"
#include "cli/plan/listener.h"
#include "cli/scripts.h"
#include "cli/terminal_text.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

std::size_t nodes_of(const RunPlan& plan) {
  const std::string& part = plan.machines.front().part;
  return static_cast<std::size_t>(std::ranges::count(plan.machines, part, &MachinePlan::part));
}

/// The option of that name, where another scheduler has declared it; else what `declare` makes.
template <typename Declare>
Option once(Options& command, const std::string& flag, const Declare& declare) {
  const std::optional<Option> there = command.find(flag);
  return there ? *there : declare();
}

}  // namespace

std::vector<Option> SchedulerLauncher::add_options(Options& command) {
  JobRequest& request = *shared_;
  std::vector<Option> all;
  all.push_back(once(command, "--nodes", [&] {
    return command
        .add_whole_number("--nodes", request.nodes,
                          "nodes of the job (1; in an allocation all of its nodes)", {1, 100'000})
        .type_name("N");
  }));
  all.push_back(once(command, "--ntasks_per_node", [&] {
    return command
        .add_option("--ntasks_per_node", request.ntasks_per_node,
                    "processes per node (--nproc_per_node, else --gpus_per_node, else 1)")
        .type_name("N")
        .check(must_be_count);
  }));
  all.push_back(once(command, "--seeds", [&] {
    return command
        .add_option("--seeds", request.seeds, "a job array, a run for each seed: 1-5 or 1,3,7")
        .type_name("LIST");
  }));
  for (const SchedulerOption& option : options()) {
    all.push_back(once(command, option.flag, [&] {
      std::string& value = request.values[option.flag];
      return option.value.empty() ? command.add_flag(option.flag, value, option.about)
                                  : command.add_option(option.flag, value, option.about)
                                        .type_name(option.value)
                                        .check(must_be_one_line);
    }));
  }
  const SchedulerOption more = argument_option();
  all.push_back(command.add_option(more.flag, arguments_, more.about)
                    .type_name(more.value)
                    .one_value_each()
                    .check([this](const std::string& text) { return must_be_argument(text); }));
  return all;
}

JobRequest SchedulerLauncher::request() const {
  JobRequest all = *shared_;
  all.arguments = arguments_;
  return all;
}

MachinePlan SchedulerLauncher::machine_of(const Targets& targets, int id, int first_rank,
                                          int processes) {
  MachinePlan machine;
  machine.id = id;
  machine.host = targets.hosts.front();
  machine.processes = processes;
  machine.first_rank = first_rank;
  machine.leader = Leader::other;
  return machine;
}

Targets SchedulerLauncher::reach(const RunFlags& flags, const Settings& settings) const {
  if (!flags.hosts.hostfile.empty())
    throw UsageError(fmt::format("--hostfile names machines, and {} chooses those itself", title()),
                     "--nodes says how many");
  HostOptions options = flags.hosts;
  if (options.runs_on.empty()) options.runs_on = "local";  // not the settings' machines
  Targets targets = *choose_targets(options, settings);
  if (targets.hosts.size() != 1)
    throw UsageError(fmt::format("--launcher {} wants one login host, and --runs_on names {}",
                                 name(), targets.hosts.size()),
                     "--nodes says how many nodes the job has");
  return targets;
}

void SchedulerLauncher::place(const RunFlags& flags, const Targets& targets, RunPlan& plan) const {
  if (flags.listener != "auto")
    throw UsageError(
        fmt::format("--distributed_ip_and_port names a machine, and {} chooses those itself",
                    title()),
        "leave it away: rank 0 listens on the job's first node, on a free port");
  if (!flags.gpus.empty())
    throw UsageError(
        fmt::format("--gpus chooses a machine's GPUs, and {} does that itself", title()),
        "ask it for a number of GPUs: --gpus_per_node, --gres, or an argument of its own");
  const JobRequest request = this->request();
  const std::vector<std::uint64_t> seeds = parse_seeds(request.seeds);
  if (!seeds.empty() && flags.seed)
    throw UsageError("--seed and --seeds each say which seeds are used", "give one of them");
  const int processes = processes_of_node(request.ntasks_per_node, flags.nproc_per_node,
                                          request.value("--gpus_per_node"));
  const int nodes = request.nodes.value_or(1);
  for (std::size_t part = 0; part < std::max<std::size_t>(seeds.size(), 1); ++part) {
    for (int node = 0; node < nodes; ++node) {
      plan.machines.push_back(
          machine_of(targets, static_cast<int>(plan.machines.size()), node * processes, processes));
      if (!seeds.empty()) plan.machines.back().part = fmt::format("seed{}", seeds[part]);
    }
  }
  plan.world_size = nodes * processes;
  check_request(request, shape_of(plan));
}

/// torchrun starts its node's processes itself. A trainer that writes checkpoints is told in time
/// that the job's time is up, and the job goes back into the queue.
JobShape SchedulerLauncher::shape_of(const RunPlan& plan) const {
  const bool is_torchrun = plan.environment.torchrun == Torchrun::yes;
  const int processes = plan.machines.front().processes;
  return {plan.run_id,
          nodes_of(plan),
          processes,
          is_torchrun ? 1 : processes,
          notice_before_end(shared_->value("--time")),
          plan.program.empty()};
}

/// The variables for the job's script and its processes' scripts: the job's nodes, and the parts of
/// the run, which are the members of its array, with their seeds.
std::string SchedulerLauncher::arrays(const RunPlan& plan) const {
  std::vector<std::string> parts;
  std::vector<std::string> seeds;
  const std::vector<std::uint64_t> each_seed = parse_seeds(shared_->seeds);
  const std::size_t nodes = nodes_of(plan);
  for (std::size_t i = 0; i < plan.machines.size(); i += nodes) {
    const std::string& part = plan.machines[i].part;
    seeds.push_back(std::to_string(each_seed.empty() ? plan.seed : each_seed[seeds.size()]));
    parts.push_back(part.empty() ? "" : "/" + part);
  }
  return assign("nodes", std::to_string(nodes)) + assign_array("parts", parts) +
         assign_array("seeds", seeds) + assign_path("output", run_output_folder(plan)) +
         assign("log_mark", log_mark(plan));
}

/// The scheduler's functions, and the variables that they read.
std::string SchedulerLauncher::own_text(const RunPlan& plan) const {
  std::string text = variables(shape_of(plan), request());
  return text.append(functions());
}

std::string SchedulerLauncher::batch(const RunPlan& plan) const {
  const JobShape shape = shape_of(plan);
  const bool is_even =
      shape.tasks != shape.processes || std::ranges::all_of(plan.machines, [&](const auto& each) {
        return each.processes == shape.tasks;
      });
  const bool is_torchrun = plan.environment.torchrun == Torchrun::yes;
  const std::size_t all_tasks =
      is_torchrun ? shape.nodes : static_cast<std::size_t>(plan.world_size);
  std::string text = "#!/bin/bash\n" + directives(shape, request());
  text += assign("run_id", plan.run_id) + assign("all_tasks", std::to_string(all_tasks)) +
          assign("tasks", is_even ? std::to_string(shape.tasks) : "") +
          assign("max_restarts", std::to_string(plan.max_restarts)) +
          assign("on_failure", plan.on_failure == OnFailure::stop ? "stop" : "leave") +
          assign("has_trainer", plan.program.empty() ? "yes" : "no") +
          assign("torchrun", is_torchrun ? "yes" : "no") +
          assign("notice", std::to_string(shape.notice)) + arrays(plan);
  text.append(scripts::kWords).append(own_text(plan));
  return text.append(scripts::kScheduler_batch);
}

std::string SchedulerLauncher::rank(const RunPlan& plan) const {
  std::string text = script_variables(plan, plan.machines.front()) + arrays(plan) + own_text(plan);
  return text.append(scripts::kNumbers_scheduler)
      .append(scripts::kEnvironment)
      .append(scripts::kLaunch);
}

/// The shell text that makes the machines' folders.
std::string SchedulerLauncher::folders(const RunPlan& plan) const {
  std::string states;
  std::string logs;
  for (const MachinePlan& machine : plan.machines) {
    const ssh::ScreenJob job = name_job(plan, machine);
    states += " " + ssh::quote_path(job.state_folder);
    logs += " " + ssh::quote_path(job.log);
  }
  return fmt::format("states=({})\nlogs=({})\n{}", states, logs, scripts::kScheduler_folders);
}

void SchedulerLauncher::add_needs(const RunPlan& plan, Needs& needs) const {
  const bool is_queued = plan.machines.front().leader == Leader::other;
  needs.session = !is_queued;
  needs.runs_here = false;
  std::string text = own_text(plan) + assign("batch", is_queued ? batch(plan) : "");
  needs.launcher_checks = {text.append(scripts::kScheduler_check)};
}

bool SchedulerLauncher::complete(Console&, const RunFlags&, const Targets&,
                                 const std::vector<Checked>& checked, RunPlan& plan) const {
  for (MachinePlan& machine : plan.machines)
    if (plan.program.empty()) take_trainer(checked.front(), machine);
  return true;
}

std::vector<std::pair<std::string, std::string>> SchedulerLauncher::texts(
    const RunPlan& plan) const {
  return {{"batch script", batch(plan)}};
}

ssh::ScreenJob SchedulerLauncher::job_of(const RunPlan& plan) const {
  ssh::ScreenJob job = name_job(plan, plan.machines.front());
  job.files = {{"batch", batch(plan)}, {"rank", rank(plan)}};
  if (plan.world_size > 1) job.files.emplace_back("token", plan.token);
  if (!plan.experiment_toml.empty())
    job.files.emplace_back("experiment.toml", plan.experiment_toml);
  job.begin = folders(plan);
  return job;
}

std::vector<HostJob> SchedulerLauncher::jobs(const RunPlan& plan) const {
  ssh::ScreenJob job = job_of(plan);
  const std::string own = std::string(scripts::kWords) + own_text(plan);
  job.begin += own + assign("members", std::to_string(plan.machines.size() / nodes_of(plan)));
  job.begin.append(scripts::kScheduler_submit);
  job.files.emplace_back("probe", own);
  job.files.emplace_back("scheduler", fmt::format("title={}\nnodes={}\n", title(), nodes_of(plan)));
  job.files.emplace_back("end", own + std::string(scripts::kScheduler_end));
  return {{0, job}};
}

std::string SchedulerLauncher::what_was_started(const RunPlan& plan) const {
  return fmt::format("{}, {}, {}", counted(nodes_of(plan), "node"),
                     counted(static_cast<std::size_t>(plan.world_size), "process"),
                     shared_->seeds.empty() ? fmt::format("seed {}", plan.seed)
                                            : "for each of the seeds " + shared_->seeds);
}

std::string SchedulerLauncher::started(const RunPlan& plan,
                                       const killfiles::Killfile& killfile) const {
  return fmt::format("given to {} on {} as job {}; {}", title(), killfile.machines.front().host,
                     killfile.job, what_was_started(plan));
}

}  // namespace dtool::cli
