// SPDX-License-Identifier: MIT
#include "cli/launchers/scheduler_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "cli/action.h"
#include "cli/plan/listener.h"
#include "ssh/number.h"

namespace dtool::cli {
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

}  // namespace dtool::cli
