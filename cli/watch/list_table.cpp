// SPDX-License-Identifier: MIT
#include "cli/watch/list_table.h"

#include <algorithm>
#include <array>

#include "cli/failures.h"
#include "cli/terminal_text.h"
#include "cli/watch/run_states.h"
#include "ssh/host.h"

namespace dtool::cli {
namespace {

/// In the order in which they stand; the last one takes the rest of the line.
enum Column : std::size_t { run, started, machines, state, hosts, kColumns };
constexpr std::array<const char*, kColumns> kTitles = {"RUN", "STARTED", "MACHINES", "STATE",
                                                       "HOSTS"};
/// What the last column needs to be worth more than a column that can go.
constexpr std::size_t kNarrowestHosts = 24;

struct Row {
  std::array<std::string, kColumns> cells;
  Style style = Style::plain;  ///< of the state
};

Style style_of(const std::vector<MachineStatus>& all) {
  const auto has = [&all](auto is) { return std::ranges::any_of(all, is); };
  if (has([](const MachineStatus& each) { return !each.is_well(); })) return Style::red;
  const bool runs =
      has([](const MachineStatus& each) { return each.state == MachineState::running; });
  return runs ? Style::green : Style::plain;
}

Row row_of(const killfiles::Killfile& killfile, const std::vector<MachineStatus>* answers) {
  Row row;
  row.cells[run] = killfile.run_id;
  row.cells[started] = killfile.created;
  row.cells[machines] = std::to_string(killfile.machines.size());
  row.cells[hosts] = folded_hosts(killfile);
  if (!killfile.chain.empty()) row.cells[hosts] += "  resumes " + killfile.chain.back();
  if (!killfile.rerun_of.empty()) row.cells[hosts] += "  repeats " + killfile.rerun_of;
  if (answers == nullptr) return row;
  row.cells[state] = answers->empty() ? "unknown" : states_text(*answers);
  row.style = style_of(*answers);
  return row;
}

/// A width of 0: the column is left out.
using Widths = std::array<std::size_t, kColumns>;

/// Of all columns but the last, with the blanks behind them.
std::size_t used_by(const Widths& widths) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < hosts; ++i) used += widths[i] == 0 ? 0 : widths[i] + 2;
  return used;
}

Widths widths_of(const std::vector<Row>& rows, std::size_t columns) {
  Widths widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < kColumns; ++i)
      widths[i] = std::max(widths[i], length(row.cells[i]));
  for (std::size_t i = 0; i < kColumns; ++i)
    if (widths[i] > 0) widths[i] = std::max(widths[i], length(kTitles[i]));
  const std::size_t least = std::min(widths[hosts], kNarrowestHosts);
  for (const Column each : {machines, started})
    if (columns > 0 && used_by(widths) + least > columns) widths[each] = 0;
  return widths;
}

std::string line_of(const Console& console, const Row& row, const Widths& widths,
                    std::size_t columns) {
  std::string line;
  for (std::size_t i = 0; i < hosts; ++i) {
    if (widths[i] == 0) continue;
    const std::size_t blanks = widths[i] - std::min(widths[i], length(row.cells[i]));
    const std::string space(blanks, ' ');
    line += i == machines ? space + row.cells[i]
            : i == state  ? console.styled(row.style, row.cells[i] + space)
                          : row.cells[i] + space;
    line += "  ";
  }
  const std::size_t used = used_by(widths);
  if (columns == 0) return line + row.cells[hosts];
  return columns > used ? line + cut(row.cells[hosts], columns - used) : line;
}

}  // namespace

std::string folded_hosts(const killfiles::Killfile& killfile) {
  std::vector<ssh::Host> all;
  for (const killfiles::Machine& machine : killfile.machines)
    all.push_back(ssh::parse_host(machine.host));
  return fold_hosts(all);
}

std::vector<std::string> list_table(const Console& console,
                                    const std::vector<killfiles::Killfile>& runs,
                                    const std::vector<std::vector<MachineStatus>>& states,
                                    std::size_t columns) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < runs.size(); ++i)
    rows.push_back(row_of(runs[i], states.empty() ? nullptr : &states[i]));
  const Widths widths = widths_of(rows, columns);
  Row titles;
  std::ranges::copy(kTitles, titles.cells.begin());
  std::vector<std::string> lines = {
      console.styled(Style::bold, line_of(Console(), titles, widths, columns))};
  for (const Row& row : rows) lines.push_back(line_of(console, row, widths, columns));
  return lines;
}

}  // namespace dtool::cli
