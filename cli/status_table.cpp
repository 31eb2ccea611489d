#include "cli/status_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/failures.h"
#include "cli/run_status.h"
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

/// Machines that share a row; one where nothing is folded.
using Group = std::vector<const MachineStatus*>;

struct Row {
  std::array<std::string, kColumns> cells;
  std::string last;
  Style style = Style::plain;
};

/// Characters of UTF-8 text. Wide ones of East Asia count as one.
std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char each) {
    return (static_cast<unsigned char>(each) & 0xc0) != 0x80;
  }));
}

std::string padded(std::string_view text, std::size_t columns) {
  return std::string(text).append(columns - std::min(columns, length(text)), ' ');
}

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
  if (status.state == MachineState::unreachable) return status.error;
  if (status.state == MachineState::not_started && status.processes > 0)
    return fmt::format("the run's folder is gone; {} of its processes {} left", status.processes,
                       status.processes == 1 ? "is" : "are");
  if (status.state == MachineState::not_started) return "nothing of the run is on this host";
  if (status.state == MachineState::lost && status.processes > 0) {
    return fmt::format("{} of its processes {} left: {}", status.processes,
                       status.processes == 1 ? "is" : "are", status.last_line);
  }
  if (!status.full_disk.empty())
    return fmt::format("the disk at {} is full; {}", status.full_disk, status.last_line);
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

/// The odd ones by themselves, where there is room for them.
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
  // What is not well stands out at the top.
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

std::string duration_text(std::int64_t seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  if (seconds < kMinute) return fmt::format("{}s", std::max<std::int64_t>(seconds, 0));
  if (seconds < kHour) return fmt::format("{}m {:02}s", seconds / kMinute, seconds % kMinute);
  if (seconds < kDay) return fmt::format("{}h {:02}m", seconds / kHour, seconds % kHour / kMinute);
  return fmt::format("{}d {:02}h", seconds / kDay, seconds % kDay / kHour);
}

std::string cut(std::string_view text, std::size_t columns) {
  if (length(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::size_t at = 0;
  for (std::size_t count = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
    if (++count == columns) break;
  }
  return std::string(text.substr(0, at)) + "…";
}

std::string summary(const std::vector<MachineStatus>& machines) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  std::size_t running = 0;
  for (const MachineStatus& each : machines) {
    if (each.state == MachineState::running) {
      ++running;
      continue;
    }
    const std::string text = state_text(each);
    const auto found = std::find_if(counts.begin(), counts.end(),
                                    [&text](const auto& count) { return count.first == text; });
    if (found == counts.end()) {
      counts.emplace_back(text, 1);
    } else {
      ++found->second;
    }
  }
  const std::string plural = machines.size() == 1 ? "" : "s";
  if (counts.size() == 1 && running == 0)
    return fmt::format("{} on {} machine{}", counts.front().first, machines.size(), plural);
  std::string text = fmt::format("running on {} of {} machine{}", running, machines.size(), plural);
  for (const auto& [name, count] : counts) text += fmt::format(", {} {}", count, name);
  return text;
}

namespace {

/// Who supervises the run, which attempt this is, and what the supervision cannot see.
std::vector<std::string> supervision_notes(const killfiles::Killfile& killfile,
                                           const std::vector<MachineStatus>& machines) {
  std::vector<std::string> notes;
  const bool is_running = std::any_of(machines.begin(), machines.end(), [](const auto& each) {
    return each.state == MachineState::running;
  });
  if (is_running && !killfile.coordinator.empty())
    notes.push_back(fmt::format("supervised by machine {} ({})", killfile.machines.front().id,
                                killfile.machines.front().host));
  const int attempt = attempt_of(machines) + 1;
  if (killfile.max_restarts > 0 && attempt <= killfile.max_restarts + 1) {
    notes.push_back(fmt::format("attempt {} of {}", attempt, killfile.max_restarts + 1));
  } else if (attempt > 1) {
    notes.push_back(fmt::format("attempt {}", attempt));  // a scheduler counts no restarts of ours
  }
  std::map<std::string, std::vector<ssh::Host>> unwatched;
  for (const MachineStatus& each : machines) {
    const bool is_watched = each.supervision.empty() || each.supervision == "ok";
    if (each.state == MachineState::running && !is_watched)
      unwatched[each.supervision].push_back(each.host);
  }
  for (const auto& [why, hosts] : unwatched)
    notes.push_back(fmt::format("not supervised: {}: {}", fold_hosts(hosts), why));
  return notes;
}

/// `epoch 7  step 735  loss 0.0135  samples/s 28639  (2s ago)`
std::string progress_line(const Progress& progress) {
  std::string line = fmt::format("step {}", progress.step);
  if (progress.epoch > 0) line.insert(0, fmt::format("epoch {}  ", progress.epoch));
  if (progress.loss) line += fmt::format("  loss {:.4f}", *progress.loss);
  if (progress.samples_per_s) line += fmt::format("  samples/s {:.0f}", *progress.samples_per_s);
  if (progress.train_success)
    line += fmt::format("  train success {:.4f}", *progress.train_success);
  if (progress.validation_success)
    line += fmt::format("  validation success {:.4f}", *progress.validation_success);
  return line + fmt::format("  ({} ago)", duration_text(progress.age_s));
}

}  // namespace

std::vector<std::string> headlines(const Console& console, const killfiles::Killfile& killfile,
                                   const std::vector<MachineStatus>& machines, Room room) {
  const auto fit = [room](const std::string& text, std::size_t used) {
    return room.columns == 0 ? text : cut(text, room.columns - std::min(used, room.columns));
  };
  const std::string id = fit(killfile.run_id, 0);
  std::vector<std::string> lines = {
      console.styled(Style::bold, id) +
      fit(fmt::format(": {}, started {}", summary(machines), killfile.created), length(id))};
  if (const auto cause = cause_of(machines)) {
    lines.push_back(console.styled(Style::red, "cause:") + fit(" " + cause->text, 6));
    for (const std::string& line : cause->lines) lines.push_back(fit("  | " + line, 0));
  }
  for (const std::string& note : supervision_notes(killfile, machines))
    lines.push_back(fit(note, 0));
  if (const auto progress = progress_of(machines)) {
    lines.push_back(fit(progress_line(*progress), 0));
  }
  return lines;
}

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
