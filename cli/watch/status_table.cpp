// SPDX-License-Identifier: MIT
#include "cli/watch/status_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "cli/console.h"
#include "cli/host_output.h"
#include "cli/watch/run_status.h"
#include "cli/watch/status_answer.h"
#include "ssh/host.h"

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
  if (status.is_silent()) return status.error;
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
  std::vector<std::string> places;  ///< the places that a scheduler chose
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

namespace {

/// What supervises the run, which attempt this is, and what the supervision cannot see.
std::vector<std::string> supervision_notes(const killfiles::Killfile& killfile,
                                           const std::vector<MachineStatus>& machines) {
  std::vector<std::string> notes;
  const bool is_running = std::any_of(machines.begin(), machines.end(), [](const auto& each) {
    return each.state == MachineState::running;
  });
  const auto is_watched = [](const MachineStatus& each) {
    return each.supervision.empty() || each.supervision == "ok";
  };
  if (is_running && is_watched(machines.front()) && !killfile.coordinator.empty())
    notes.push_back(fmt::format("supervised by machine {} ({})", killfile.machines.front().id,
                                killfile.machines.front().host));
  const int attempt = attempt_of(machines) + 1;
  if (killfile.max_restarts > 0 && attempt <= killfile.max_restarts + 1) {
    notes.push_back(fmt::format("attempt {} of {}", attempt, killfile.max_restarts + 1));
  } else if (attempt > 1) {
    notes.push_back(fmt::format("attempt {}", attempt));  // a scheduler counts no restarts of ours
  }
  if (const auto failure = earlier_failure_of(machines); failure && failure->attempt + 1 < attempt)
    notes.push_back(fmt::format("attempt {} failed: {}", failure->attempt + 1, failure->text));
  std::map<std::string, std::vector<ssh::Host>> unwatched;
  for (const MachineStatus& each : machines) {
    if (each.state == MachineState::running && !is_watched(each))
      unwatched[each.supervision].push_back(each.host);
  }
  for (const auto& [why, hosts] : unwatched)
    notes.push_back(fmt::format("not supervised: {}: {}", fold_hosts(hosts), why));
  return notes;
}

/// `last output 9m ago; longer: rank 3 (12m)`, if no machine that runs has written for a minute.
std::string silence_of(const std::vector<MachineStatus>& machines) {
  constexpr std::int64_t kSilent = 60;
  constexpr std::int64_t kLonger = 10;
  constexpr std::size_t kMostRanks = 8;
  std::optional<std::int64_t> newest;
  std::vector<std::pair<int, std::int64_t>> ranks;
  for (const MachineStatus& each : machines) {
    if (each.output_s_ago)
      newest = std::min(newest.value_or(*each.output_s_ago), *each.output_s_ago);
    ranks.insert(ranks.end(), each.silent_s.begin(), each.silent_s.end());
  }
  if (!newest || *newest < kSilent) return "";
  std::vector<std::string> longer;
  std::ranges::sort(ranks, std::greater(), &std::pair<int, std::int64_t>::second);
  for (const auto& [rank, age] : ranks)
    if (age >= *newest + kLonger && longer.size() < kMostRanks)
      longer.push_back(fmt::format("rank {} ({})", rank, duration_text(age)));
  return fmt::format("last output {} ago{}{}", duration_text(*newest),
                     longer.empty() ? "" : "; longer: ", fmt::join(longer, ", "));
}

/// `epoch 7  step 735  loss 0.0135  samples/s 28639  (2s ago)`
std::string progress_line(const TrainingProgress& progress) {
  const bool has_steps = progress.step > 0 || progress.others.empty();
  std::string line = has_steps ? fmt::format("step {}", progress.step) : "metrics";
  if (progress.epoch > 0) line.insert(0, fmt::format("epoch {}  ", progress.epoch));
  if (progress.loss) line += fmt::format("  loss {:.4f}", *progress.loss);
  if (progress.samples_per_s) line += fmt::format("  samples/s {:.0f}", *progress.samples_per_s);
  if (progress.train_success)
    line += fmt::format("  train success {:.4f}", *progress.train_success);
  if (progress.validation_success)
    line += fmt::format("  validation success {:.4f}", *progress.validation_success);
  for (const auto& [name, value] : progress.others)
    line += fmt::format("  {} {:.4g}", without_controls(name), value);
  return line + fmt::format("  ({} ago)", duration_text(progress.age_s));
}

}  // namespace

std::string summary(const std::vector<MachineStatus>& machines) {
  struct Count {
    std::string text;
    int order;
    std::size_t machines;
  };
  std::vector<Count> counts;
  std::size_t running = 0;
  for (const MachineStatus& each : machines) {
    if (each.state == MachineState::running) {
      ++running;
      continue;
    }
    const std::string text = state_text(each);
    const auto found = std::ranges::find(counts, text, &Count::text);
    if (found == counts.end()) {
      const int order = each.is_well() ? 2 : each.state == MachineState::stopped ? 1 : 0;
      counts.push_back({text, order, 1});
    } else {
      ++found->machines;
    }
  }
  std::ranges::stable_sort(counts, {}, &Count::order);  // the machines that failed come first
  const std::string all = counted(machines.size(), "machine");
  if (counts.size() == 1 && running == 0) return fmt::format("{} on {}", counts.front().text, all);
  if (running > 0) {
    std::string text = fmt::format("running on {} of {}", running, all);
    for (const Count& each : counts) text += fmt::format(", {} {}", each.machines, each.text);
    return text;
  }
  std::string text;
  for (const Count& each : counts) {
    text += text.empty() ? fmt::format("{}: {} of {} {}", state_of_run(machines), each.machines,
                                       all, each.text)
                         : fmt::format(", {} {}", each.machines, each.text);
  }
  return text;
}

std::vector<std::string> headlines(const Console& console, const killfiles::Killfile& killfile,
                                   const std::vector<MachineStatus>& machines,
                                   std::size_t columns) {
  const auto fit = [columns](const std::string& text, std::size_t used) {
    return columns == 0 ? text : cut(text, columns - std::min(used, columns));
  };
  const std::string id = fit(killfile.run_id, 0);
  std::vector<std::string> lines = {
      console.styled(Style::bold, id) +
      fit(fmt::format(": {}, started {}", summary(machines), local_time(killfile.created)),
          length(id))};
  if (!killfile.chain.empty())
    lines.push_back(fit(fmt::format("resumes {}", fmt::join(killfile.chain, " -> ")), 0));
  if (!killfile.rerun_of.empty()) lines.push_back(fit("repeats " + killfile.rerun_of, 0));
  if (const auto cause = cause_of(machines)) {
    lines.push_back(console.styled(Style::red, "cause:") + fit(" " + cause->text, 6));
    if (!cause->lines.empty()) lines.push_back(fit("the last lines of " + cause->where + ":", 0));
    for (const std::string& line : cause->lines) lines.push_back(fit("  | " + line, 0));
  }
  for (const std::string& note : supervision_notes(killfile, machines))
    lines.push_back(fit(note, 0));
  if (const std::string silence = silence_of(machines); !silence.empty())
    lines.push_back(fit(silence, 0));
  if (const auto progress = progress_of(machines)) {
    lines.push_back(fit(progress_line(*progress), 0));
  }
  return lines;
}

namespace {

constexpr std::size_t kBetween = 2;  ///< blanks between columns

/// Of all columns but the last. 0: the column is left out.
using Widths = std::vector<std::size_t>;

std::size_t total(const Widths& widths) {
  std::size_t sum = 0;
  for (const std::size_t each : widths) sum += each == 0 ? 0 : each + kBetween;
  return sum;
}

Widths widths_of(const TableForm& form, const std::vector<TableRow>& rows, std::size_t room) {
  Widths widths(form.columns.size() - 1);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    for (const TableRow& row : rows) widths[i] = std::max(widths[i], length(row.cells[i]));
    if (widths[i] > 0) widths[i] = std::max(widths[i], length(form.columns[i].title));
    if (room > 0) widths[i] = std::min(widths[i], form.columns[i].widest);
  }
  for (const std::size_t each : form.dispensable) {
    if (room == 0 || total(widths) + form.least_last <= room) break;
    widths[each] = 0;
  }
  return widths;
}

std::string line_of(const Console& console, const TableForm& form, const TableRow& row,
                    const Widths& widths, std::size_t room) {
  std::string line;
  std::size_t used = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const bool fits = room == 0 || used + widths[i] + kBetween <= room;
    if (widths[i] == 0 || !(fits || form.columns[i].stays)) continue;
    const std::string text = cut(row.cells[i], widths[i]);
    const std::string blanks(widths[i] - length(text), ' ');
    const std::string cell = form.columns[i].is_number ? blanks + text : text + blanks;
    line += (i == form.styled ? console.styled(row.style, cell) : cell);
    line.append(kBetween, ' ');
    used += widths[i] + kBetween;
  }
  if (room == 0) return line + row.cells.back();
  return room > used ? line + cut(row.cells.back(), room - used) : line;
}

}  // namespace

std::vector<std::string> table_lines(const Console& console, const TableForm& form,
                                     const std::vector<TableRow>& rows, std::size_t room) {
  const Widths widths = widths_of(form, rows, room);
  TableRow titles;
  for (const TableColumn& column : form.columns) titles.cells.emplace_back(column.title);
  std::vector<std::string> lines = {
      console.styled(Style::bold, line_of(Console(), form, titles, widths, room))};
  for (const TableRow& row : rows) lines.push_back(line_of(console, form, row, widths, room));
  return lines;
}

}  // namespace dtool::cli
