// SPDX-License-Identifier: MIT
#include "ssh/host/job_files.h"

#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/words.h"

namespace dtool::host {

std::optional<Leader> parse_leader(std::string_view line, std::string_view boot) {
  const auto pid = parse_number<pid_t>(cut_word(line));
  const auto start = parse_number<std::uint64_t>(cut_word(line));
  if (!pid || *pid < 1 || !start) return std::nullopt;
  return Leader{*pid, *start, !boot.empty() && cut_word(line) == boot};
}

std::optional<Process> find_leader(const Leader& leader) {
  if (!leader.is_of_this_boot) return std::nullopt;
  return find_process(leader.pid, leader.start);
}

void add_leader(const Leader& leader, RunTraces& traces) {
  if (!leader.is_of_this_boot) return;
  // Where the leader is gone its session may live on, and no other process gets its number then.
  if (find_leader(leader) || !find_process(leader.pid)) traces.leaders[leader.pid] = leader.start;
}

JobFiles read_job_files(const std::string& folder) {
  return {parse_leader(read_line(folder + "/process"), boot_id()), read_line(folder + "/holder")};
}

}  // namespace dtool::host
