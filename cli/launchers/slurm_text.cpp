// SPDX-License-Identifier: MIT
#include "cli/launchers/slurm_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>

#include "ssh/host/session/rank.h"
#include "ssh/number.h"

namespace dtool::cli {
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
  if (!ssh::read_number<std::uint64_t>(allocation.job) || variable("SLURM_JOB_NODELIST").empty())
    return std::nullopt;
  const auto nodes = ssh::read_number<std::uint64_t>(variable("SLURM_JOB_NUM_NODES"));
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
