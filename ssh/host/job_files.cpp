// SPDX-License-Identifier: MIT
#include "ssh/host/job_files.h"

#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

Boot compare_boots(std::string_view recorded, std::string_view current) {
  const auto is_of_init = [](std::string_view boot) { return boot.starts_with(kBootOfInit); };
  if (recorded.empty() || current.empty() || is_of_init(recorded) != is_of_init(current))
    return Boot::unknown;
  if (recorded != current) return Boot::earlier;
  // Many boots of a machine begin with the same start time.
  return is_of_init(current) ? Boot::unknown : Boot::this_one;
}

}  // namespace

std::optional<Leader> parse_leader(std::string_view line, std::string_view boot) {
  const auto pid = parse_number<pid_t>(cut_word(line));
  const auto start = parse_number<std::uint64_t>(cut_word(line));
  if (!pid || *pid < 1 || !start) return std::nullopt;
  return Leader{*pid, *start, compare_boots(cut_word(line), boot)};
}

std::optional<Process> find_leader(const Leader& leader) {
  if (leader.boot == Boot::earlier) return std::nullopt;
  return find_process(leader.pid, leader.start);
}

void add_leader(const Leader& leader, RunTraces& traces) {
  if (leader.boot == Boot::earlier) return;
  // Where the leader is gone its session may live on, and no other process of this boot gets its
  // number then.
  const bool may_live_on = leader.boot == Boot::this_one && !find_process(leader.pid);
  if (may_live_on || find_leader(leader)) traces.leaders[leader.pid] = leader.start;
}

JobFiles read_job_files(const std::string& folder) {
  return {parse_leader(read_line(folder + "/process"), current_boot()),
          read_line(folder + "/holder")};
}

}  // namespace dtool::host
