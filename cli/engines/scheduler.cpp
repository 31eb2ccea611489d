// SPDX-License-Identifier: MIT
#include "cli/engines/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <set>

#include "cli/action.h"
#include "cli/assignments.h"
#include "cli/console.h"
#include "cli/host_output.h"
#include "cli/options.h"
#include "cli/plan/flags.h"
#include "cli/scripts.h"
#include "ssh/quote.h"
#include "ssh/wire/words.h"

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

std::vector<Option> SchedulerEngine::add_options(Options& command) {
  JobRequest& request = *shared_;
  std::vector<Option> all;
  all.push_back(once(command, "--nodes", [&] {
    return command.add_whole_number("--nodes N", request.nodes,
                                    "nodes of the job (1; in an allocation all of its nodes)",
                                    {1, 100'000});
  }));
  all.push_back(once(command, "--ntasks_per_node", [&] {
    return command
        .add_option("--ntasks_per_node N", request.ntasks_per_node,
                    "processes per node (--nproc_per_node, else --gpus_per_node, else 1)")
        .check(must_be_count);
  }));
  all.push_back(once(command, "--seeds", [&] {
    return command.add_option("--seeds LIST", request.seeds,
                              "a job array, a run for each seed: 1-5 or 1,3,7");
  }));
  for (const SchedulerOption& option : options()) {
    all.push_back(once(command, option.flag, [&] {
      std::string& value = request.values[option.flag];
      return option.value.empty()
                 ? command.add_flag(option.flag, value, option.about)
                 : command.add_option(option.flag + " " + option.value, value, option.about)
                       .check(must_be_one_line);
    }));
  }
  const SchedulerOption more = argument_option();
  all.push_back(command.add_option(more.flag + " " + more.value, arguments_, more.about)
                    .check([this](const std::string& text) { return must_be_argument(text); }));
  return all;
}

JobRequest SchedulerEngine::request() const {
  JobRequest all = *shared_;
  all.arguments = arguments_;
  return all;
}

MachinePlan SchedulerEngine::machine_of(const Targets& targets, int id, int first_rank,
                                        int processes) {
  MachinePlan machine;
  machine.id = id;
  machine.host = targets.hosts.front();
  machine.processes = processes;
  machine.first_rank = first_rank;
  machine.leader = Leader::other;
  return machine;
}

Targets SchedulerEngine::reach(const RunFlags& flags, const Settings& settings) const {
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

void SchedulerEngine::place(const RunFlags& flags, const Targets& targets, RunPlan& plan) const {
  if (flags.listener != "auto")
    throw UsageError(
        fmt::format("--distributed_ip_and_port names a machine, and {} chooses those itself",
                    title()),
        "leave it away: rank 0 listens on the job's first node, on a free port");
  if (!flags.run.gpus.empty())
    throw UsageError(
        fmt::format("--gpus chooses a machine's GPUs, and {} does that itself", title()),
        "ask it for a number of GPUs: --gpus_per_node, --gres, or an argument of its own");
  const JobRequest request = this->request();
  const std::vector<std::uint64_t> seeds = parse_seeds(request.seeds);
  if (!seeds.empty() && flags.run.seed)
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
JobShape SchedulerEngine::shape_of(const RunPlan& plan) const {
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
std::string SchedulerEngine::arrays(const RunPlan& plan) const {
  std::vector<std::string> parts;
  std::vector<std::string> seeds;
  const std::vector<std::uint64_t> each_seed = parse_seeds(shared_->seeds);
  const std::size_t nodes = nodes_of(plan);
  for (std::size_t i = 0; i < plan.machines.size(); i += nodes) {
    const std::string& part = plan.machines[i].part;
    seeds.push_back(
        std::to_string(each_seed.empty() ? plan.seed.value_or(0) : each_seed[seeds.size()]));
    parts.push_back(part.empty() ? "" : "/" + part);
  }
  return assign("nodes", std::to_string(nodes)) + assign_array("parts", parts) +
         assign_array("seeds", seeds) + assign_path("output", run_output_folder(plan)) +
         assign("log_mark", log_mark(plan));
}

/// The scheduler's functions, and the variables that they read.
std::string SchedulerEngine::own_text(const RunPlan& plan) const {
  std::string text = variables(shape_of(plan), request());
  return text.append(functions());
}

std::string SchedulerEngine::batch(const RunPlan& plan) const {
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
          assign("on_failure", plan.on_failure) +
          assign("has_trainer", plan.program.empty() ? "yes" : "no") +
          assign("torchrun", is_torchrun ? "yes" : "no") +
          assign("notice", std::to_string(shape.notice)) +
          assign("failure_prefix", host::kFailurePrefix) + arrays(plan);
  text.append(scripts::kWords).append(own_text(plan));
  return text.append(scripts::kScheduler_batch);
}

std::string SchedulerEngine::rank(const RunPlan& plan) const {
  std::string text = script_variables(plan, plan.machines.front()) + arrays(plan) + own_text(plan);
  return text.append(scripts::kNumbers_scheduler)
      .append(scripts::kEnvironment)
      .append(scripts::kLaunch);
}

/// The shell text that makes the machines' folders.
std::string SchedulerEngine::folders(const RunPlan& plan) const {
  std::string states;
  std::string logs;
  for (const MachinePlan& machine : plan.machines) {
    const ssh::ScreenJob job = name_job(plan, machine);
    states += " " + ssh::quote_path(job.state_folder);
    logs += " " + ssh::quote_path(job.log);
  }
  return fmt::format("states=({})\nlogs=({})\n{}", states, logs, scripts::kScheduler_folders);
}

void SchedulerEngine::add_needs(const RunPlan& plan, Needs& needs) const {
  const bool is_queued = plan.machines.front().leader == Leader::other;
  needs.session = !is_queued;
  needs.runs_here = false;
  std::string text = own_text(plan) + assign("batch", is_queued ? batch(plan) : "");
  needs.engine_checks = {text.append(scripts::kScheduler_check)};
}

bool SchedulerEngine::complete(Console&, const RunFlags&, const Targets&,
                               const std::vector<Checked>& checked, RunPlan& plan) const {
  for (MachinePlan& machine : plan.machines)
    if (plan.program.empty()) take_trainer(checked.front(), machine);
  return true;
}

std::vector<std::pair<std::string, std::string>> SchedulerEngine::texts(const RunPlan& plan) const {
  return {{"batch script", batch(plan)}};
}

ssh::ScreenJob SchedulerEngine::job_of(const RunPlan& plan) const {
  ssh::ScreenJob job = name_job(plan, plan.machines.front());
  job.files = {{"batch", batch(plan)}, {"rank", rank(plan)}};
  if (plan.world_size > 1) job.files.emplace_back("token", plan.token);
  if (!plan.experiment.empty()) job.files.emplace_back("experiment.toml", plan.experiment);
  job.begin = folders(plan);
  return job;
}

std::vector<HostJob> SchedulerEngine::jobs(const RunPlan& plan) const {
  ssh::ScreenJob job = job_of(plan);
  const std::string own = std::string(scripts::kWords) + own_text(plan);
  job.begin += own + assign("members", std::to_string(plan.machines.size() / nodes_of(plan)));
  job.begin.append(scripts::kScheduler_submit);
  job.files.emplace_back("probe", own);
  job.files.emplace_back("scheduler", fmt::format("title={}\nnodes={}\n", title(), nodes_of(plan)));
  job.files.emplace_back("end", own + std::string(scripts::kScheduler_end));
  return {{0, job}};
}

std::string SchedulerEngine::what_was_started(const RunPlan& plan) const {
  return fmt::format("{}, {}, {}", counted(nodes_of(plan), "node"),
                     counted(static_cast<std::size_t>(plan.world_size), "process"),
                     shared_->seeds.empty() ? fmt::format("seed {}", plan.seed.value_or(0))
                                            : "for each of the seeds " + shared_->seeds);
}

std::string SchedulerEngine::started(const RunPlan& plan,
                                     const killfiles::Killfile& killfile) const {
  return fmt::format("given to {} on {} as job {}; {}", title(), killfile.machines.front().host,
                     killfile.job, what_was_started(plan));
}

std::string JobRequest::value(const std::string& flag) const {
  const auto found = values.find(flag);
  return found == values.end() ? "" : found->second;
}

std::optional<std::uint64_t> seconds_of_time(const std::string& time) {
  static const std::regex kNone("(|infinite|unlimited|0|-1)", std::regex::icase);
  if (std::regex_match(time, kNone)) return std::nullopt;
  static const std::regex kTime(R"((?:(\d{1,6})-)?(\d{1,9})(?::(\d{1,6}))?(?::(\d{1,6}))?)");
  std::smatch match;
  if (!std::regex_match(time, match, kTime))
    throw UsageError(fmt::format("--time: '{}' is no time as Slurm has it", time),
                     "MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS or DAYS-HOURS");
  const auto part = [&match](int i) { return match[i].matched ? std::stoull(match[i]) : 0ULL; };
  if (match[1].matched) return ((part(1) * 24 + part(2)) * 60 + part(3)) * 60 + part(4);
  if (match[4].matched) return (part(2) * 60 + part(3)) * 60 + part(4);
  return part(2) * 60 + part(3);
}

bool has_argument(const JobRequest& request, std::string_view name) {
  return std::ranges::any_of(request.arguments, [name](const std::string& argument) {
    return std::string_view(argument).substr(0, argument.find('=')) == name;
  });
}

int notice_before_end(const std::string& time) {
  constexpr std::uint64_t kLongest = 60;
  const auto limit = seconds_of_time(time);
  return static_cast<int>(limit ? std::clamp<std::uint64_t>(*limit / 4, 1, kLongest) : kLongest);
}

int processes_of_node(const std::string& ntasks_per_node, const std::string& nproc_per_node,
                      const std::string& gpus_per_node) {
  if (!ntasks_per_node.empty() && nproc_per_node != "auto")
    throw UsageError("--ntasks_per_node and --nproc_per_node mean the same", "give one of them");
  if (!ntasks_per_node.empty()) return parse_processes(ntasks_per_node);
  if (nproc_per_node != "auto") return parse_processes(nproc_per_node);
  const auto gpus = host::parse_number<std::uint64_t>(
      std::string_view(gpus_per_node).substr(gpus_per_node.rfind(':') + 1));
  return gpus && *gpus >= 1 && *gpus <= 1024 ? static_cast<int>(*gpus) : 1;
}

std::vector<std::uint64_t> parse_seeds(const std::string& text) {
  constexpr std::size_t kMost = 1000;
  const UsageError fault(fmt::format("--seeds: '{}' is no list of seeds", text),
                         "1-5, or 1,3,7; at most 1000 of them, each once");
  std::vector<std::uint64_t> seeds;
  if (text.empty()) return seeds;
  std::set<std::uint64_t> seen;
  std::string_view rest = text;
  while (true) {
    const std::string_view item = rest.substr(0, rest.find(','));
    const std::size_t dash = item.find('-');
    const auto first = host::parse_number<std::uint64_t>(item.substr(0, dash));
    const auto last =
        dash == item.npos ? first : host::parse_number<std::uint64_t>(item.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kMost) throw fault;
    for (std::uint64_t seed = *first; seed - *first <= *last - *first; ++seed) {
      if (!seen.insert(seed).second || seeds.size() == kMost) throw fault;
      seeds.push_back(seed);
      if (seed == *last) break;
    }
    if (item.size() == rest.size()) return seeds;
    rest.remove_prefix(item.size() + 1);
  }
}

std::string must_be_one_line(const std::string& text) {
  if (text.empty()) return "the value is empty";
  const bool has_control =
      std::ranges::any_of(text, [](unsigned char each) { return each < 0x20 || each == 0x7f; });
  return has_control ? "the value holds a line end or another control character" : "";
}

}  // namespace dtool::cli
