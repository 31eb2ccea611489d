// SPDX-License-Identifier: MIT
#include "cli/watch/list_table.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "cli/failures.h"
#include "cli/record/comparison.h"
#include "cli/terminal_text.h"
#include "cli/watch/run_states.h"
#include "cli/watch/text_table.h"
#include "ssh/host.h"
#include "ssh/quote.h"

namespace dtool::cli {
namespace {

/// In the order in which they stand.
enum Column : std::size_t { run, started, age, state, metric, machines, hosts, ran, kColumns };

/// What the last column needs to be worth more than one that can go.
constexpr std::size_t kNarrowestRan = 24;

Style style_of(const std::vector<MachineStatus>& all) {
  const auto has = [&all](auto is) { return std::ranges::any_of(all, is); };
  if (has([](const MachineStatus& each) { return !each.is_well(); })) return Style::red;
  const bool runs =
      has([](const MachineStatus& each) { return each.state == MachineState::running; });
  return runs ? Style::green : Style::plain;
}

/// The killfile's form of a time; nothing if it is another.
std::optional<std::time_t> read_time(const std::string& text) {
  std::tm time{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return ::timegm(&time);
}

std::string age_text(std::int64_t seconds) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 4> kUnits = {
      {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}}};
  for (const auto& [size, name] : kUnits) {
    if (seconds >= size) return fmt::format("{} {} ago", seconds / size, name);
  }
  return "now";
}

TableRow row_of(const ListedRun& listed, Clock clock, std::time_t now) {
  const killfiles::Killfile& killfile = listed.killfile;
  TableRow row{std::vector<std::string>(kColumns)};
  row.cells[run] = killfile.run_id;
  row.cells[started] = killfile.created;
  if (const auto time = read_time(killfile.created)) {
    row.cells[age] = age_text(now - *time);
    if (clock == Clock::local)
      row.cells[started] = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(*time));
  }
  row.cells[metric] = last_metric(listed);
  row.cells[machines] = std::to_string(killfile.machines.size());
  row.cells[hosts] = folded_hosts(killfile);
  row.cells[ran] = what_ran(listed);
  if (!killfile.chain.empty()) row.cells[ran] += "  resumes " + killfile.chain.back();
  if (!killfile.rerun_of.empty()) row.cells[ran] += "  repeats " + killfile.rerun_of;
  if (!listed.states) {
    row.cells[state] = known_end(listed);
    const bool is_well = row.cells[state].empty() || row.cells[state] == "ended";
    row.style = is_well || row.cells[state] == "killed" ? Style::plain : Style::red;
    return row;
  }
  row.cells[state] = listed.states->empty() ? "unknown" : states_text(*listed.states);
  row.style = style_of(*listed.states);
  return row;
}

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// Whether a flag of the program or a setting of the experiment has that value.
bool has_setting(const RunRecord& record, const std::string& name, const std::string& value) {
  for (std::size_t i = 0; i + 1 < record.program.size(); ++i) {
    const std::string& flag = record.program[i];
    const std::size_t dashes = std::min(flag.find_first_not_of('-'), flag.size());
    if (dashes > 0 && flag.substr(dashes) == name && record.program[i + 1] == value) return true;
  }
  if (record.experiment.empty()) return false;
  try {
    for (const auto& [key, own] : flatten_toml(record.experiment)) {
      const bool is_named = key == name || key.ends_with("." + name);
      if (is_named && (own == value || own == '"' + value + '"' || own == '\'' + value + '\''))
        return true;
    }
  } catch (const std::invalid_argument&) {  // an older dtool's
  }
  return false;
}

}  // namespace

std::string folded_hosts(const killfiles::Killfile& killfile) {
  std::vector<ssh::Host> all;
  for (const killfiles::Machine& machine : killfile.machines)
    all.push_back(ssh::parse_host(machine.host));
  return fold_hosts(all);
}

std::string what_ran(const ListedRun& run) {
  if (run.record && !run.record->program.empty())
    return without_controls(ssh::quote_all(run.record->program));
  const auto& words = run.killfile.command_line;
  const auto dashes = std::ranges::find(words, "--");
  if (dashes != words.end())
    return without_controls(ssh::quote_all({std::next(dashes), words.end()}));
  return without_controls(run.killfile.what);
}

std::string known_end(const ListedRun& run) {
  if (run.record && run.record->end) return without_controls(run.record->end->state);
  return run.killfile.ended.empty() ? "" : "killed";
}

std::string last_metric(const ListedRun& run) {
  constexpr std::array<std::string_view, 5> kPosition = {"epoch", "step", "time", "seed", "rank"};
  constexpr std::array<std::string_view, 5> kTelling = {"succ", "acc", "rew", "return", "loss"};
  if (!run.record || !run.record->end) return "";
  for (const nlohmann::json* line : {&run.record->end->validation, &run.record->end->metrics}) {
    std::vector<std::pair<std::size_t, std::string>> found;
    for (const auto& [name, value] : line->items()) {
      if (!value.is_number() || std::ranges::count(kPosition, name) != 0) continue;
      const auto word = std::ranges::find_if(
          kTelling, [&](std::string_view each) { return name.find(each) != name.npos; });
      found.emplace_back(word - kTelling.begin(),
                         fmt::format("{} {:.4g}", name, value.get<double>()));
    }
    if (found.empty()) continue;
    return without_controls(std::ranges::min(found).second);
  }
  return "";
}

bool matches(const ListedRun& run, const std::vector<std::string>& words) {
  std::string all = fmt::format("{}\n{}\n{}\n{}\n{}", run.killfile.run_id, what_ran(run),
                                folded_hosts(run.killfile), known_end(run), run.killfile.code_path);
  for (const killfiles::Machine& machine : run.killfile.machines) all += "\n" + machine.host;
  if (run.record) all += "\n" + run.record->code.branch + "\n" + run.record->code.commit;
  all = in_lower_case(all);
  return std::ranges::all_of(words, [&](const std::string& word) {
    const std::size_t sign = word.find('=');
    return all.find(in_lower_case(word)) != all.npos ||
           (sign != word.npos && run.record &&
            has_setting(*run.record, word.substr(0, sign), word.substr(sign + 1)));
  });
}

std::vector<std::string> list_table(const Console& console, const std::vector<ListedRun>& runs,
                                    Clock clock, std::time_t now, std::size_t columns) {
  std::vector<TableRow> rows;
  std::size_t longest = 0;
  for (const ListedRun& each : runs) {
    rows.push_back(row_of(each, clock, now));
    longest = std::max(longest, length(rows.back().cells[ran]));
  }
  const TableForm form{{{.title = "RUN", .stays = true},
                        {.title = "STARTED"},
                        {.title = "AGE"},
                        {.title = "STATE", .stays = true},
                        {.title = "METRIC"},
                        {.title = "MACHINES", .is_number = true},
                        {.title = "HOSTS", .widest = 20},
                        {.title = "RAN"}},
                       state,
                       {started, machines, hosts, metric, age},
                       std::min(longest, kNarrowestRan)};
  return table_lines(console, form, rows, columns);
}

}  // namespace dtool::cli
