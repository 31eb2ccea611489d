// Slurm as the launcher: the run becomes a job that sbatch takes on a login host, and srun starts
// its processes on the nodes. What is under way is in Slurm's hands: dtool asks it, and never works
// around it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "cli/action.h"
#include "cli/failures.h"
#include "cli/flag_values.h"
#include "cli/launchers/all.h"
#include "cli/launchers/slurm/slurm_text.h"
#include "cli/run/environment/assignments.h"
#include "cli/run/listener.h"
#include "cli/scripts.h"
#include "cli/terminal_text.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

std::size_t nodes_of(const RunPlan& plan) {
  const std::string& part = plan.machines.front().part;
  return static_cast<std::size_t>(std::ranges::count(plan.machines, part, &MachinePlan::part));
}

MachinePlan machine_of(const Targets& targets, int id, int first_rank, int processes) {
  MachinePlan machine;
  machine.id = id;
  machine.host = targets.hosts.front();
  machine.processes = processes;
  machine.first_rank = first_rank;
  machine.leader = Leader::other;
  return machine;
}

/// The allocation that dtool itself runs in, unless a login host was named.
std::optional<Allocation> allocation_of(const RunFlags& flags) {
  return flags.hosts.runs_on.empty() ? surrounding_allocation() : std::nullopt;
}

class SlurmLauncher : public Launcher {
 public:
  std::string_view name() const override { return "slurm"; }
  bool is_at_home() const override { return surrounding_allocation().has_value(); }
  std::string_view title() const override { return "Slurm"; }
  void add_options(CLI::App& app) override;
  Targets reach(const RunFlags& flags, const Settings& settings) const override;
  void place(const RunFlags& flags, const Targets& targets, RunPlan& plan) const override;
  void add_needs(const RunPlan& plan, Needs& needs) const override;
  bool complete(Console& console, const RunFlags& flags, const Targets& targets,
                const std::vector<Checked>& checked, RunPlan& plan) const override;
  std::string_view usual_listener() const override {
    return "the job's first node, a port that is free there";
  }
  std::vector<std::pair<std::string, std::string>> texts(const RunPlan& plan) const override;
  std::vector<HostJob> jobs(const RunPlan& plan) const override;
  std::string started(const RunPlan& plan, const killfiles::Killfile& killfile) const override;

 private:
  void place_in_allocation(const RunFlags& flags, const Targets& targets,
                           const Allocation& allocation, RunPlan& plan) const;
  void place_in_queue(const RunFlags& flags, const Targets& targets, RunPlan& plan) const;
  std::string arrays(const RunPlan& plan) const;
  std::string batch(const RunPlan& plan) const;
  std::string rank(const RunPlan& plan) const;
  std::string folders(const RunPlan& plan) const;

  std::optional<int> nodes_;
  std::string ntasks_per_node_;
  std::string seeds_;
  SlurmRequest request_;
};

void SlurmLauncher::add_options(CLI::App& app) {
  add_whole_number(app, "--nodes", nodes_,
                   "nodes of the job (1; in an allocation all of its nodes)", {1, 100'000})
      ->type_name("N");
  app.add_option("--ntasks_per_node", ntasks_per_node_,
                 "processes a node (--nproc_per_node, else --gpus_per_node, else 1)")
      ->type_name("N")
      ->check(must_be_count);
  app.add_option("--seeds", seeds_, "a job array, a run for each seed: 1-5 or 1,3,7")
      ->type_name("LIST");
  for (const SlurmOption& option : slurm_options()) {
    app.add_option(option.flag, request_.values[option.flag], option.about)
        ->type_name(option.value)
        ->check(must_be_one_line);
  }
  app.add_flag("--exclusive", request_.is_exclusive, "no other job on the nodes");
  app.add_option("--sbatch_arg", request_.arguments,
                 "another argument of sbatch, such as --mail-type=END; repeatable")
      ->type_name("ARG")
      ->allow_extra_args(false)
      ->check(must_be_sbatch_argument);
}

Targets SlurmLauncher::reach(const RunFlags& flags, const Settings& settings) const {
  if (!flags.hosts.hostfile.empty())
    throw UsageError("--hostfile names machines, and Slurm chooses those itself",
                     "--nodes says how many; --nodelist asks for some of them");
  HostOptions options = flags.hosts;
  if (options.runs_on.empty()) options.runs_on = "local";  // not the settings' machines
  Targets targets = *choose_targets(options, settings);
  if (targets.hosts.size() != 1)
    throw UsageError(fmt::format("--launcher slurm wants one login host, and --runs_on names {}",
                                 targets.hosts.size()),
                     "--nodes says how many nodes the job has, --nodelist which");
  return targets;
}

void SlurmLauncher::place(const RunFlags& flags, const Targets& targets, RunPlan& plan) const {
  if (flags.listener != "auto")
    throw UsageError("--distributed_ip_and_port names a machine, and Slurm chooses those itself",
                     "leave it away: rank 0 listens on the job's first node, on a free port");
  if (const auto allocation = allocation_of(flags)) {
    place_in_allocation(flags, targets, *allocation, plan);
  } else {
    place_in_queue(flags, targets, plan);
  }
}

/// What is free already has its partition, limits and devices: only nodes and processes are chosen.
void SlurmLauncher::place_in_allocation(const RunFlags& flags, const Targets& targets,
                                        const Allocation& allocation, RunPlan& plan) const {
  const auto given =
      std::ranges::find_if(request_.values, [](const auto& each) { return !each.second.empty(); });
  const std::string flag = given != request_.values.end() ? given->first
                           : request_.is_exclusive        ? "--exclusive"
                           : !request_.arguments.empty()  ? "--sbatch_arg"
                           : !seeds_.empty()              ? "--seeds"
                                                          : "";
  if (!flag.empty())
    throw UsageError(
        fmt::format("{} is for a new job, and dtool is inside job {}", flag, allocation.job),
        "leave it away, or name the login host with --runs_on to queue a new job");
  const int available = static_cast<int>(allocation.tasks.size());
  const int nodes = nodes_.value_or(available);
  if (nodes > available)
    throw UsageError(fmt::format("--nodes {}: job {}, which dtool is inside, has {}", nodes,
                                 allocation.job, available),
                     "leave --nodes away to use all of them");
  const bool is_given = !ntasks_per_node_.empty() || flags.nproc_per_node != "auto";
  std::vector<int> tasks = allocation.tasks;
  if (is_given)
    std::ranges::fill(tasks, processes_of_node(ntasks_per_node_, flags.nproc_per_node, ""));
  plan.world_size = 0;
  for (int node = 0; node < nodes; ++node) {
    const int processes = tasks[static_cast<std::size_t>(node)];
    plan.machines.push_back(machine_of(targets, node, plan.world_size, processes));
    plan.world_size += processes;
  }
  plan.machines.front().leader = Leader::screen;
}

void SlurmLauncher::place_in_queue(const RunFlags& flags, const Targets& targets,
                                   RunPlan& plan) const {
  const std::vector<std::uint64_t> seeds = parse_seeds(seeds_);
  if (!seeds.empty() && flags.seed)
    throw UsageError("--seed and --seeds each say which seeds are used", "give one of them");
  const int processes = processes_of_node(ntasks_per_node_, flags.nproc_per_node,
                                          request_.values.at("--gpus_per_node"));
  const int nodes = nodes_.value_or(1);
  for (std::size_t part = 0; part < std::max<std::size_t>(seeds.size(), 1); ++part) {
    for (int node = 0; node < nodes; ++node) {
      plan.machines.push_back(
          machine_of(targets, static_cast<int>(plan.machines.size()), node * processes, processes));
      if (!seeds.empty()) plan.machines.back().part = fmt::format("seed{}", seeds[part]);
    }
  }
  plan.world_size = nodes * processes;
}

/// What the job's script and its processes' both know: the job's nodes, and the parts of the run,
/// which are the members of its array, with their seeds.
std::string SlurmLauncher::arrays(const RunPlan& plan) const {
  std::vector<std::string> parts;
  std::vector<std::string> seeds;
  const std::vector<std::uint64_t> each_seed = parse_seeds(seeds_);
  const std::size_t nodes = nodes_of(plan);
  for (std::size_t i = 0; i < plan.machines.size(); i += nodes) {
    const std::string& part = plan.machines[i].part;
    seeds.push_back(std::to_string(each_seed.empty() ? plan.seed : each_seed[seeds.size()]));
    parts.push_back(part.empty() ? "" : "/" + part);
  }
  return assign("nodes", std::to_string(nodes)) + assign_array("parts", parts) +
         assign_array("seeds", seeds) + assign_path("output", run_output_folder(plan));
}

/// A trainer that writes checkpoints is told in time that the job's time is up, and the job goes
/// back into the queue; another program's user says so by an argument of sbatch.
std::string SlurmLauncher::batch(const RunPlan& plan) const {
  SlurmRequest request = request_;
  const int notice = notice_before_end(request_.values.at("--time"));
  if (plan.program.empty() && !has_argument(request, "--signal"))
    request.arguments.push_back(fmt::format("--signal=B:USR1@{}", notice));
  const bool is_torchrun = plan.environment.torchrun == Torchrun::yes;
  const int processes = plan.machines.front().processes;
  // torchrun starts its node's processes, with the cores that they would have had.
  const int tasks = is_torchrun ? 1 : processes;
  std::string& cores = request.values["--cpus_per_task"];
  if (is_torchrun && cores.empty()) cores = std::to_string(processes);
  std::string text = "#!/bin/bash\n" + sbatch_lines(plan.run_id, nodes_of(plan), tasks, request);
  const bool is_even = is_torchrun || std::ranges::all_of(plan.machines, [tasks](const auto& each) {
                         return each.processes == tasks;
                       });
  const std::size_t all_tasks =
      is_torchrun ? nodes_of(plan) : static_cast<std::size_t>(plan.world_size);
  text += assign("run_id", plan.run_id) + assign("all_tasks", std::to_string(all_tasks)) +
          assign("tasks", is_even ? std::to_string(tasks) : "") +
          assign("max_restarts", std::to_string(plan.max_restarts)) +
          assign("on_failure", plan.on_failure == OnFailure::stop ? "stop" : "leave") +
          assign("has_trainer", plan.program.empty() ? "yes" : "no") +
          assign("notice", std::to_string(notice)) + arrays(plan);
  return text.append(scripts::kWords).append(scripts::kFree_port).append(scripts::kSlurm_batch);
}

std::string SlurmLauncher::rank(const RunPlan& plan) const {
  std::string text = script_variables(plan, plan.machines.front()) + arrays(plan);
  return text.append(scripts::kNumbers_slurm).append(scripts::kEnvironment).append(scripts::kRank);
}

/// The shell text that makes the machines' folders.
std::string SlurmLauncher::folders(const RunPlan& plan) const {
  std::string states;
  std::string logs;
  for (const MachinePlan& machine : plan.machines) {
    const ssh::ScreenJob job = name_job(plan, machine);
    states += " " + ssh::quote_path(job.state_folder);
    logs += " " + ssh::quote_path(job.log);
  }
  return fmt::format("states=({})\nlogs=({})\n{}", states, logs, scripts::kSlurm_folders);
}

void SlurmLauncher::add_needs(const RunPlan& plan, Needs& needs) const {
  const bool is_queued = plan.machines.front().leader == Leader::other;
  needs.session = !is_queued;
  needs.runs_here = false;
  std::string text = assign("batch", is_queued ? batch(plan) : "");
  needs.launcher_checks = {text.append(scripts::kSlurm_check)};
}

bool SlurmLauncher::complete(Console&, const RunFlags&, const Targets&,
                             const std::vector<Checked>& checked, RunPlan& plan) const {
  for (MachinePlan& machine : plan.machines)
    machine.trainer = plan.program.empty() ? checked.front().trainer : "";
  return true;
}

std::vector<std::pair<std::string, std::string>> SlurmLauncher::texts(const RunPlan& plan) const {
  return {{"batch script", batch(plan)}};
}

std::vector<HostJob> SlurmLauncher::jobs(const RunPlan& plan) const {
  const MachinePlan& first = plan.machines.front();
  ssh::ScreenJob job = name_job(plan, first);
  job.files = {{"batch", batch(plan)}, {"rank", rank(plan)}};
  if (plan.world_size > 1) job.files.emplace_back("token", plan.token);
  if (!plan.experiment_toml.empty())
    job.files.emplace_back("experiment.toml", plan.experiment_toml);
  job.begin = folders(plan);
  if (first.leader == Leader::screen) {
    job.script = "exec bash ./batch \"${PWD%/*}\"\n";
    job.begin += "begin() { make_folders probe; begin_in_session; }\n";
    job.files.emplace_back("probe", std::string(scripts::kSlurm_steps_probe));
    job.files.emplace_back("end",
                           "allocation=$(< allocation)\n" + std::string(scripts::kSlurm_end_steps));
    job.files.emplace_back("allocation", surrounding_allocation()->job);
    return {{0, job}};
  }
  const std::size_t parts = plan.machines.size() / nodes_of(plan);
  job.begin += assign("array", first.part.empty() ? "" : fmt::format("0-{}", parts - 1));
  job.begin.append(scripts::kSlurm_submit);
  job.files.emplace_back("probe", arrays(plan) + std::string(scripts::kSlurm_probe));
  job.files.emplace_back("end", std::string(scripts::kSlurm_end));
  return {{0, job}};
}

std::string SlurmLauncher::started(const RunPlan& plan, const killfiles::Killfile& killfile) const {
  const std::string what = fmt::format(
      "{}, {}, {}", counted(nodes_of(plan), "node"),
      counted(static_cast<std::size_t>(plan.world_size), "process"),
      seeds_.empty() ? fmt::format("seed {}", plan.seed) : "for each of the seeds " + seeds_);
  if (plan.machines.front().leader == Leader::screen)
    return fmt::format("started in the allocation of job {}, and ends with it; {}",
                       surrounding_allocation()->job, what);
  return fmt::format("given to Slurm on {} as job {}; {}", killfile.machines.front().host,
                     killfile.job, what);
}

}  // namespace

std::unique_ptr<Launcher> make_slurm_launcher() {
  return std::make_unique<SlurmLauncher>();
}

}  // namespace dtool::cli
