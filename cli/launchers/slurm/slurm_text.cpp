#include "cli/launchers/slurm/slurm_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <regex>
#include <set>

#include "cli/action.h"
#include "cli/run/listener.h"
#include "ssh/number.h"

namespace dtool::cli {
namespace {

constexpr std::uint64_t kMostNodes = 100'000;
constexpr std::uint64_t kMostTasks = 1024;  ///< on a node

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

/// Seconds of `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`; nothing for what means no limit.
std::optional<std::uint64_t> seconds_of(const std::string& time) {
  static const std::regex kNone("(infinite|unlimited|0|-1)", std::regex::icase);
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

}  // namespace

const std::vector<SlurmOption>& slurm_options() {
  static const std::vector<SlurmOption> options = {
      {"--gpus_per_node", "[TYPE:]N", "GPUs on each node"},
      {"--gres", "LIST", "generic resources of each node, such as gpu:a100:4"},
      {"--partition", "NAME", "where the job is queued"},
      {"--qos", "NAME", "quality of service"},
      {"--account", "NAME", "whose share pays"},
      {"--time", "TIME", "limit: MINUTES, HOURS:MINUTES:SECONDS or DAYS-HOURS"},
      {"--cpus_per_task", "N", "cores for each process"},
      {"--mem", "SIZE", "memory of each node, such as 64G"},
      {"--constraint", "LIST", "features that the nodes must have"},
      {"--nodelist", "NODES", "nodes that must be among them"}};
  return options;
}

std::string sbatch_lines(std::string_view name, std::size_t nodes, int tasks,
                         const SlurmRequest& request) {
  std::string text =
      fmt::format("#SBATCH --job-name={}\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n", name,
                  nodes, tasks);
  for (const SlurmOption& option : slurm_options()) {
    const std::string& value = request.values.at(option.flag);
    if (!value.empty()) text += directive(spelled(option.flag) + "=" + value);
  }
  if (request.is_exclusive) text += directive("--exclusive");
  if (!has_argument(request, "--no-requeue")) text += directive("--requeue");
  for (const std::string& argument : request.arguments) text += directive(argument);
  return text;
}

std::vector<int> parse_tasks_per_node(std::string_view text) {
  std::vector<int> tasks;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, comma);
    const std::size_t times = item.find("(x");
    const auto count = ssh::read_number<std::uint64_t>(item.substr(0, times));
    const auto nodes =
        times == item.npos || !item.ends_with(')')
            ? std::optional<std::uint64_t>(1)
            : ssh::read_number<std::uint64_t>(item.substr(times + 2, item.size() - times - 3));
    if (!count || !nodes || *count > kMostTasks || *nodes + tasks.size() > kMostNodes) return {};
    tasks.insert(tasks.end(), *nodes, std::max(1, static_cast<int>(*count)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return tasks;
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
  allocation.tasks = parse_tasks_per_node(variable("SLURM_TASKS_PER_NODE"));
  allocation.tasks.resize(std::clamp<std::uint64_t>(nodes.value_or(1), 1, kMostNodes), 1);
  return allocation;
}

bool has_argument(const SlurmRequest& request, std::string_view name) {
  return std::ranges::any_of(request.arguments, [name](const std::string& argument) {
    return std::string_view(argument).substr(0, argument.find('=')) == name;
  });
}

int notice_before_end(const std::string& time) {
  constexpr std::uint64_t kLongest = 60;
  if (time.empty()) return kLongest;
  const auto limit = seconds_of(time);
  return static_cast<int>(limit ? std::clamp<std::uint64_t>(*limit / 4, 1, kLongest) : kLongest);
}

int processes_of_node(const std::string& ntasks_per_node, const std::string& nproc_per_node,
                      const std::string& gpus_per_node) {
  if (!ntasks_per_node.empty() && nproc_per_node != "auto")
    throw UsageError("--ntasks_per_node and --nproc_per_node mean the same", "give one of them");
  if (!ntasks_per_node.empty()) return parse_processes(ntasks_per_node);
  if (nproc_per_node != "auto") return parse_processes(nproc_per_node);
  const auto gpus = ssh::read_number<std::uint64_t>(
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
    const auto first = ssh::read_number<std::uint64_t>(item.substr(0, dash));
    const auto last =
        dash == item.npos ? first : ssh::read_number<std::uint64_t>(item.substr(dash + 1));
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
