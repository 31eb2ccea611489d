// SPDX-License-Identifier: MIT
#include "cli/watch/status_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "cli/failures.h"
#include "cli/terminal_text.h"
#include "ssh/host_pattern.h"

namespace dtool::cli {
namespace {

constexpr std::size_t kNarrowestLastLine = 24;
constexpr std::size_t kWidestHosts = 30;

enum Column { machine, host, state, pid, up, processes, cpu, memory, gpu, gpu_memory, kColumns };

constexpr std::array<const char*, kColumns> kTitles = {
    "MACHINE", "HOST", "STATE", "PID", "UP", "PROCS", "CPU", "MEMORY", "GPU", "GPU MEM"};

/// Where the room is narrow, these go, the first first.
constexpr std::array kDispensable = {pid, processes, gpu_memory, up, memory, cpu, gpu};

/// Machines that share a row; a single one if nothing is folded.
using Group = std::vector<const MachineStatus*>;

struct Row {
  std::array<std::string, kColumns> cells;
  std::string last;
  Style style = Style::plain;
};

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

Row row_of(const Group& group) {
  const MachineStatus& first = *group.front();
  Row row;
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
  row.last = last_of(first);
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

using Widths = std::array<std::size_t, kColumns>;

std::size_t total(const Widths& widths) {
  std::size_t sum = 0;
  for (const std::size_t each : widths) sum += each == 0 ? 0 : each + 2;
  return sum;
}

/// A width of 0: the column is left out.
Widths widths_of(const std::vector<Row>& rows, std::size_t columns) {
  Widths widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i)
      widths[i] = std::max(widths[i], length(row.cells[i]));
  }
  for (std::size_t i = 0; i < kColumns; ++i) {
    if (widths[i] > 0) widths[i] = std::max(widths[i], length(kTitles[i]));
  }
  if (columns == 0) return widths;
  widths[host] = std::min(widths[host], kWidestHosts);
  widths[machine] = std::min(widths[machine], kWidestHosts / 2);
  for (const Column each : kDispensable) {
    if (total(widths) + kNarrowestLastLine <= columns) break;
    widths[each] = 0;
  }
  return widths;
}

std::string line_of(const Console& console, const Row& row, const Widths& widths,
                    std::size_t columns) {
  std::string line;
  std::size_t used = 0;
  for (std::size_t i = 0; i < kColumns; ++i) {
    if (widths[i] == 0 || (columns > 0 && used + widths[i] + 2 > columns)) continue;
    const std::string cell = padded(cut(row.cells[i], widths[i]), widths[i]);
    line += (i == state ? console.styled(row.style, cell) : cell) + "  ";
    used += widths[i] + 2;
  }
  return columns == 0 ? line + row.last : line + cut(row.last, columns - used);
}

}  // namespace

std::vector<std::string> table(const Console& console, const std::vector<MachineStatus>& machines,
                               Room room) {
  const std::size_t most = room.rows == 0 ? 0 : std::max<std::size_t>(room.rows, 3) - 1;
  std::vector<Row> rows;
  for (const Group& group : groups_of(machines, most)) rows.push_back(row_of(group));
  const Widths widths = widths_of(rows, room.columns);

  Row titles;
  std::copy(kTitles.begin(), kTitles.end(), titles.cells.begin());
  titles.last = "LAST LINE";
  Console plain;
  std::vector<std::string> lines = {
      console.styled(Style::bold, line_of(plain, titles, widths, room.columns))};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (most > 0 && i + 1 == most && rows.size() > most) {
      lines.push_back(fmt::format("… and {} more rows", rows.size() - i));
      break;
    }
    lines.push_back(line_of(console, rows[i], widths, room.columns));
  }
  return lines;
}

}  // namespace dtool::cli
