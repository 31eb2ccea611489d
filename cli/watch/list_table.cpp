// SPDX-License-Identifier: MIT
#include "cli/watch/list_table.h"

#include <algorithm>

#include "cli/failures.h"
#include "cli/terminal_text.h"
#include "cli/watch/run_states.h"
#include "cli/watch/text_table.h"
#include "ssh/host.h"

namespace dtool::cli {
namespace {

/// In the order in which they stand.
enum Column : std::size_t { run, started, machines, state, hosts, kColumns };

/// What the hosts need to be worth more than a column that can go.
constexpr std::size_t kNarrowestHosts = 24;

Style style_of(const std::vector<MachineStatus>& all) {
  const auto has = [&all](auto is) { return std::ranges::any_of(all, is); };
  if (has([](const MachineStatus& each) { return !each.is_well(); })) return Style::red;
  const bool runs =
      has([](const MachineStatus& each) { return each.state == MachineState::running; });
  return runs ? Style::green : Style::plain;
}

TableRow row_of(const killfiles::Killfile& killfile, const std::vector<MachineStatus>* answers) {
  TableRow row{std::vector<std::string>(kColumns)};
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
  std::vector<TableRow> rows;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    rows.push_back(row_of(runs[i], states.empty() ? nullptr : &states[i]));
    longest = std::max(longest, length(rows.back().cells[hosts]));
  }
  const TableForm form{{{.title = "RUN", .stays = true},
                        {.title = "STARTED"},
                        {.title = "MACHINES", .is_number = true},
                        {.title = "STATE", .stays = true},
                        {.title = "HOSTS"}},
                       state,
                       {machines, started},
                       std::min(longest, kNarrowestHosts)};
  return table_lines(console, form, rows, columns);
}

}  // namespace dtool::cli
