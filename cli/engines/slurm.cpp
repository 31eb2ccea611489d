// SPDX-License-Identifier: MIT
// Slurm as a scheduler: its flags, directives and functions. Also the user's own allocation: if
// dtool runs in one, nothing is queued and srun starts the processes at once.
#include "cli/engines/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <regex>
#include <set>

#include "cli/action.h"
#include "cli/scripts.h"
#include "ssh/host/session/rank.h"
#include "ssh/wire/words.h"

namespace dtool::cli {

namespace {

/// The allocation that dtool itself runs in, unless a login host was named.
std::optional<Allocation> allocation_of(const RunFlags& flags) {
  return flags.hosts.runs_on.empty() ? surrounding_allocation() : std::nullopt;
}

class SlurmEngine : public SchedulerEngine {
 public:
  using SchedulerEngine::SchedulerEngine;
  std::string_view name() const override { return "slurm"; }
  std::string_view title() const override { return "Slurm"; }
  std::string way_to_nodes(const std::string& job) const override {
    return fmt::format("srun --jobid {} --overlap --pty bash is on its node", job);
  }
  bool is_at_home() const override { return surrounding_allocation().has_value(); }
  void place(const RunFlags& flags, const Targets& targets, RunPlan& plan) const override {
    const auto allocation = allocation_of(flags);
    if (allocation && flags.listener == "auto") {
      place_in_allocation(flags, targets, *allocation, plan);
    } else {
      SchedulerEngine::place(flags, targets, plan);
    }
  }

  std::vector<HostJob> jobs(const RunPlan& plan) const override {
    if (plan.machines.front().leader != Leader::screen) return SchedulerEngine::jobs(plan);
    ssh::ScreenJob job = job_of(plan);
    job.script = "exec bash ./batch \"${PWD%/*}\"\n";
    job.begin += "begin() { make_folders probe; begin_in_session; }\n";
    job.files.emplace_back("probe", std::string(scripts::kSlurm_steps_probe));
    job.files.emplace_back("end",
                           "allocation=$(< allocation)\n" + std::string(scripts::kSlurm_end_steps));
    job.files.emplace_back("allocation", surrounding_allocation()->job);
    return {{0, job}};
  }

  std::string started(const RunPlan& plan, const killfiles::Killfile& killfile) const override {
    if (plan.machines.front().leader != Leader::screen)
      return SchedulerEngine::started(plan, killfile);
    return fmt::format("started in the allocation of job {}, and ends with it; {}",
                       surrounding_allocation()->job, what_was_started(plan));
  }

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
  /// An allocation already has its partition, limits and devices: only nodes and processes are
  /// chosen.
  void place_in_allocation(const RunFlags& flags, const Targets& targets,
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
      std::ranges::fill(tasks,
                        processes_of_node(request.ntasks_per_node, flags.nproc_per_node, ""));
    plan.world_size = 0;
    for (int node = 0; node < nodes; ++node) {
      const int processes = tasks[static_cast<std::size_t>(node)];
      plan.machines.push_back(machine_of(targets, node, plan.world_size, processes));
      plan.world_size += processes;
    }
    plan.machines.front().leader = Leader::screen;
  }
};

}  // namespace

std::unique_ptr<Engine> make_slurm_engine(std::shared_ptr<JobRequest> request) {
  return std::make_unique<SlurmEngine>(std::move(request));
}

namespace {

constexpr std::uint64_t kMostNodes = 100'000;

/// As a word of an #SBATCH line: Slurm knows quotes and backslashes there.
std::string directive_word(const std::string& word) {
  constexpr std::string_view kPlain = "=-_./,:@%+[]()*&|";
  const bool is_plain = std::ranges::all_of(word, [&](unsigned char each) {
    return std::isalnum(each) != 0 || kPlain.find(static_cast<char>(each)) != kPlain.npos;
  });
  if (is_plain && !word.empty()) return word;
  std::string quoted = "\"";
  for (const char each : word) {
    if (each == '"' || each == '\\') quoted += '\\';
    quoted += each;
  }
  return quoted + "\"";
}

std::string directive(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == argument.npos) return fmt::format("#SBATCH {}\n", argument);
  return fmt::format("#SBATCH {}={}\n", argument.substr(0, equals),
                     directive_word(argument.substr(equals + 1)));
}

/// `--gpus_per_node` as sbatch spells it.
std::string spelled(std::string flag) {
  std::ranges::replace(flag, '_', '-');
  return flag;
}

}  // namespace

const std::vector<SchedulerOption>& slurm_options() {
  static const std::vector<SchedulerOption> options = {
      {"--gpus_per_node", "[TYPE:]N", "GPUs on each node"},
      {"--gres", "LIST", "generic resources of each node, such as gpu:a100:4"},
      {"--partition", "NAME", "where the job is queued"},
      {"--qos", "NAME", "quality of service"},
      {"--account", "NAME", "the account that the job is charged to"},
      {"--time", "TIME", "limit: MINUTES, HOURS:MINUTES:SECONDS or DAYS-HOURS"},
      {"--cpus_per_task", "N", "cores for each process"},
      {"--mem", "SIZE", "memory of each node, such as 64G"},
      {"--constraint", "LIST", "features that the nodes must have"},
      {"--nodelist", "NODES", "nodes that the job must include"},
      {"--exclusive", "", "no other job on the nodes"}};
  return options;
}

std::string sbatch_lines(const JobShape& shape, JobRequest request) {
  std::string text =
      fmt::format("#SBATCH --job-name={}\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n",
                  shape.run_id, shape.nodes, shape.tasks);
  if (shape.wants_notice && !has_argument(request, "--signal"))
    request.arguments.push_back(fmt::format("--signal=B:USR1@{}", shape.notice));
  // torchrun's node gets the cores that its processes would have had.
  std::string& cores = request.values["--cpus_per_task"];
  if (shape.tasks != shape.processes && cores.empty()) cores = std::to_string(shape.processes);
  for (const SchedulerOption& option : slurm_options()) {
    const std::string value = request.value(option.flag);
    if (value.empty()) continue;
    text += directive(spelled(option.flag) + (option.value.empty() ? "" : "=" + value));
  }
  if (!has_argument(request, "--no-requeue")) text += directive("--requeue");
  for (const std::string& argument : request.arguments) text += directive(argument);
  return text;
}

std::optional<Allocation> surrounding_allocation() {
  const auto variable = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  Allocation allocation;
  allocation.job = variable("SLURM_JOB_ID");
  if (!host::parse_number<std::uint64_t>(allocation.job) || variable("SLURM_JOB_NODELIST").empty())
    return std::nullopt;
  const auto nodes = host::parse_number<std::uint64_t>(variable("SLURM_JOB_NUM_NODES"));
  allocation.tasks = host::parse_tasks_per_node(variable("SLURM_TASKS_PER_NODE"));
  allocation.tasks.resize(std::clamp<std::uint64_t>(nodes.value_or(1), 1, kMostNodes), 1);
  return allocation;
}

std::string must_be_sbatch_argument(const std::string& text) {
  static const std::set<std::string_view> kOwn = {
      "--job-name", "--nodes", "--ntasks-per-node", "--output", "--error",   "--array",
      "--ntasks",   "--chdir", "--open-mode",       "--wrap",   "--parsable"};
  if (const std::string fault = must_be_one_line(text); !fault.empty()) return fault;
  static const std::regex kArgument("--[a-z][a-z-]*(=.*)?");
  if (!std::regex_match(text, kArgument))
    return fmt::format("'{}' is no --NAME or --NAME=VALUE", text);
  const std::string_view name = std::string_view(text).substr(0, text.find('='));
  if (kOwn.contains(name)) return fmt::format("{} is dtool's own to give to sbatch", name);
  return "";
}

}  // namespace dtool::cli
