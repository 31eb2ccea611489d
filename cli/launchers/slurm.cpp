// SPDX-License-Identifier: MIT
// Slurm as a scheduler: its flags, directives and functions. Also the user's own allocation: if
// dtool runs in one, nothing is queued and srun starts the processes at once.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/action.h"
#include "cli/launchers/all.h"
#include "cli/launchers/scheduler.h"
#include "cli/launchers/slurm_text.h"
#include "cli/scripts.h"

namespace dtool::cli {
namespace {

/// The allocation that dtool itself runs in, unless a login host was named.
std::optional<Allocation> allocation_of(const RunFlags& flags) {
  return flags.hosts.runs_on.empty() ? surrounding_allocation() : std::nullopt;
}

class SlurmLauncher : public SchedulerLauncher {
 public:
  using SchedulerLauncher::SchedulerLauncher;
  std::string_view name() const override { return "slurm"; }
  std::string_view title() const override { return "Slurm"; }
  bool is_at_home() const override { return surrounding_allocation().has_value(); }
  void place(const RunFlags& flags, const Targets& targets, RunPlan& plan) const override {
    const auto allocation = allocation_of(flags);
    if (allocation && flags.listener == "auto") {
      place_in_allocation(flags, targets, *allocation, plan);
    } else {
      SchedulerLauncher::place(flags, targets, plan);
    }
  }
  std::vector<HostJob> jobs(const RunPlan& plan) const override;
  std::string started(const RunPlan& plan, const killfiles::Killfile& killfile) const override;

 protected:
  std::vector<SchedulerOption> options() const override { return slurm_options(); }
  SchedulerOption argument_option() const override {
    return {"--sbatch_arg", "ARG",
            "another argument of sbatch, such as --mail-type=END; repeatable"};
  }
  std::string must_be_argument(const std::string& text) const override {
    return must_be_sbatch_argument(text);
  }
  std::string directives(const JobShape& shape, const JobRequest& request) const override {
    return sbatch_lines(shape, request);
  }
  std::string_view functions() const override { return scripts::kSlurm; }

 private:
  void place_in_allocation(const RunFlags& flags, const Targets& targets,
                           const Allocation& allocation, RunPlan& plan) const;
};

/// An allocation already has its partition, limits and devices: only nodes and processes are
/// chosen.
void SlurmLauncher::place_in_allocation(const RunFlags& flags, const Targets& targets,
                                        const Allocation& allocation, RunPlan& plan) const {
  const JobRequest request = this->request();
  const auto given =
      std::ranges::find_if(request.values, [](const auto& each) { return !each.second.empty(); });
  const std::string flag = given != request.values.end() ? given->first
                           : !request.arguments.empty()  ? "--sbatch_arg"
                           : !request.seeds.empty()      ? "--seeds"
                                                         : "";
  if (!flag.empty())
    throw UsageError(
        fmt::format("{} is for a new job, and dtool is inside job {}", flag, allocation.job),
        "leave it away, or name the login host with --runs_on to queue a new job");
  const int available = static_cast<int>(allocation.tasks.size());
  const int nodes = request.nodes.value_or(available);
  if (nodes > available)
    throw UsageError(fmt::format("--nodes {}: job {}, which dtool is inside, has {}", nodes,
                                 allocation.job, available),
                     "leave --nodes away to use all of them");
  const bool is_given = !request.ntasks_per_node.empty() || flags.nproc_per_node != "auto";
  std::vector<int> tasks = allocation.tasks;
  if (is_given)
    std::ranges::fill(tasks, processes_of_node(request.ntasks_per_node, flags.nproc_per_node, ""));
  plan.world_size = 0;
  for (int node = 0; node < nodes; ++node) {
    const int processes = tasks[static_cast<std::size_t>(node)];
    plan.machines.push_back(machine_of(targets, node, plan.world_size, processes));
    plan.world_size += processes;
  }
  plan.machines.front().leader = Leader::screen;
}

std::vector<HostJob> SlurmLauncher::jobs(const RunPlan& plan) const {
  if (plan.machines.front().leader != Leader::screen) return SchedulerLauncher::jobs(plan);
  ssh::ScreenJob job = job_of(plan);
  job.script = "exec bash ./batch \"${PWD%/*}\"\n";
  job.begin += "begin() { make_folders probe; begin_in_session; }\n";
  job.files.emplace_back("probe", std::string(scripts::kSlurm_steps_probe));
  job.files.emplace_back("end",
                         "allocation=$(< allocation)\n" + std::string(scripts::kSlurm_end_steps));
  job.files.emplace_back("allocation", surrounding_allocation()->job);
  return {{0, job}};
}

std::string SlurmLauncher::started(const RunPlan& plan, const killfiles::Killfile& killfile) const {
  if (plan.machines.front().leader != Leader::screen)
    return SchedulerLauncher::started(plan, killfile);
  return fmt::format("started in the allocation of job {}, and ends with it; {}",
                     surrounding_allocation()->job, what_was_started(plan));
}

}  // namespace

std::unique_ptr<Launcher> make_slurm_launcher(std::shared_ptr<JobRequest> request) {
  return std::make_unique<SlurmLauncher>(std::move(request));
}

}  // namespace dtool::cli
