// SPDX-License-Identifier: MIT
#include "cli/watch/status_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cli/failures.h"
#include "cli/terminal_text.h"
#include "cli/watch/text_table.h"
#include "ssh/host_pattern.h"

namespace dtool::cli {
namespace {

constexpr std::size_t kNarrowestLastLine = 24;
constexpr std::size_t kWidestHosts = 30;

enum Column : std::size_t {
  machine,
  host,
  state,
  pid,
  up,
  processes,
  cpu,
  memory,
  gpu,
  gpu_memory,
  last,
  kColumns
};

/// Where the room is narrow, the values go before the names.
TableForm form() {
  return {{{.title = "MACHINE", .widest = kWidestHosts / 2},
           {.title = "HOST", .widest = kWidestHosts},
           {.title = "STATE"},
           {.title = "PID"},
           {.title = "UP"},
           {.title = "PROCS"},
           {.title = "CPU"},
           {.title = "MEMORY"},
           {.title = "GPU"},
           {.title = "GPU MEM"},
           {.title = "LAST LINE"}},
          state,
          {pid, processes, gpu_memory, up, memory, cpu, gpu},
          kNarrowestLastLine};
}

/// Machines that share a row; a single one if nothing is folded.
using Group = std::vector<const MachineStatus*>;

std::string bytes_text(std::int64_t bytes) {
  constexpr std::int64_t kKilo = 1024;
  if (bytes >= 10 * kKilo * kKilo * kKilo)
    return fmt::format("{} GiB", bytes / (kKilo * kKilo * kKilo));
  return fmt::format("{} MiB", bytes / (kKilo * kKilo));
}

/// One value, or `least-most` of a group.
template <typename Value, typename Text>
std::string span(const Group& group, Value value, Text text) {
  std::optional<std::int64_t> least;
  std::optional<std::int64_t> most;
  for (const MachineStatus* each : group) {
    const std::optional<std::int64_t> one = value(*each);
    if (!one) continue;
    least = std::min(least.value_or(*one), *one);
    most = std::max(most.value_or(*one), *one);
  }
  if (!least) return "";
  if (text(*least) == text(*most)) return text(*most);
  return fmt::format("{}-{}", text(*least), text(*most));
}

std::optional<std::int64_t> gpu_use(const MachineStatus& status) {
  std::int64_t sum = 0;
  std::int64_t count = 0;
  for (const GpuUse& each : status.gpus) {
    if (each.use_percent) sum += *each.use_percent, ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / count);
}

std::optional<std::int64_t> gpu_memory_mib(const MachineStatus& status) {
  std::optional<std::int64_t> sum;
  for (const GpuUse& each : status.gpus) {
    if (each.memory_mib) sum = sum.value_or(0) + *each.memory_mib;
  }
  return sum;
}

std::string last_of(const MachineStatus& status) {
  if (status.state == MachineState::unreachable || status.state == MachineState::unproven)
    return status.error;
  if (status.state == MachineState::not_started) return "nothing of the run is on this host";
  if (status.state == MachineState::lost && status.processes > 0) {
    return fmt::format("{} of its processes {} left: {}", status.processes,
                       status.processes == 1 ? "is" : "are", status.last_line);
  }
  if (!status.full_disk.empty())
    return fmt::format("the disk at {} is full{}{}", status.full_disk,
                       status.last_line.empty() ? "" : "; ", status.last_line);
  return status.last_line;
}

TableRow row_of(const Group& group) {
  const MachineStatus& first = *group.front();
  TableRow row{std::vector<std::string>(kColumns)};
  std::vector<std::string> ids;
  std::vector<ssh::Host> hosts;
  std::vector<std::string> places;  ///< that a scheduler chose
  for (const MachineStatus* each : group) {
    ids.push_back(std::to_string(each->id));
    hosts.push_back(each->host);
    if (!each->node.empty()) places.push_back(each->node);
  }
  const std::string folded_ids = ssh::fold(ids);
  row.cells[machine] = group.size() == 1             ? ids.front()
                       : folded_ids.starts_with('[') ? folded_ids.substr(1, folded_ids.size() - 2)
                                                     : folded_ids;
  row.cells[host] = places.empty() ? fold_hosts(hosts) : ssh::fold(places);
  row.cells[state] = state_text(first);
  const auto plain = [](std::int64_t value) { return std::to_string(value); };
  const auto percent = [](std::int64_t value) { return fmt::format("{}%", value); };
  const auto mib = [](std::int64_t value) { return bytes_text(value * 1024 * 1024); };
  if (group.size() == 1 && first.up_s && first.pid) row.cells[pid] = plain(*first.pid);
  row.cells[up] = span(
      group, [](const auto& each) { return each.up_s; }, duration_text);
  row.cells[processes] = span(
      group,
      [](const auto& each) {
        return each.processes == 0 ? std::nullopt : std::optional<std::int64_t>(each.processes);
      },
      plain);
  row.cells[cpu] = span(
      group,
      [](const auto& each) {
        return each.cpu_percent ? std::optional<std::int64_t>(*each.cpu_percent) : std::nullopt;
      },
      percent);
  row.cells[memory] = span(
      group, [](const auto& each) { return each.memory_bytes; }, bytes_text);
  row.cells[gpu] = span(group, gpu_use, percent);
  row.cells[gpu_memory] = span(group, gpu_memory_mib, mib);
  row.cells[last] = last_of(first);
  row.style = first.state == MachineState::running ? Style::green
              : first.is_well()                    ? Style::plain
                                                   : Style::red;
  return row;
}

/// Gives the exceptional machines rows of their own if there is room.
std::vector<Group> with_few_apart(std::vector<Group> groups, std::size_t most) {
  constexpr std::size_t kFew = 4;
  std::vector<Group> apart;
  std::size_t rows = groups.size();
  for (Group& group : groups) {
    const bool fits = group.size() <= kFew && rows + group.size() - 1 <= most;
    if (fits) {
      rows += group.size() - 1;
      for (const MachineStatus* each : group) apart.push_back({each});
    } else {
      apart.push_back(std::move(group));
    }
  }
  return apart;
}

std::vector<Group> groups_of(const std::vector<MachineStatus>& machines, std::size_t most) {
  std::vector<Group> groups;
  if (most == 0 || machines.size() <= most) {
    for (const MachineStatus& each : machines) groups.push_back({&each});
    return groups;
  }
  std::map<std::string, std::size_t> place;
  for (const MachineStatus& each : machines) {
    const auto [at, is_new] = place.try_emplace(state_text(each) + each.error, groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(&each);
  }
  // Machines with problems come first.
  std::stable_partition(groups.begin(), groups.end(),
                        [](const Group& group) { return !group.front()->is_well(); });
  return with_few_apart(std::move(groups), most);
}

}  // namespace

std::vector<std::string> table(const Console& console, const std::vector<MachineStatus>& machines,
                               Room room) {
  const std::size_t most = room.rows == 0 ? 0 : std::max<std::size_t>(room.rows, 3) - 1;
  std::vector<TableRow> rows;
  for (const Group& group : groups_of(machines, most)) rows.push_back(row_of(group));
  std::vector<std::string> lines = table_lines(console, form(), rows, room.columns);
  if (most > 0 && rows.size() > most) {
    lines.resize(most);
    lines.push_back(fmt::format("… and {} more rows", rows.size() - most + 1));
  }
  return lines;
}

}  // namespace dtool::cli
