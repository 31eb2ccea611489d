// SPDX-License-Identifier: MIT
#include "cli/plot/terminal_chart.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "cli/plot/chart.h"

namespace dtool::cli {

void show_charts(Console& console, const std::vector<PlotSource>& sources,
                 const std::vector<Panel>& panels, std::size_t columns, std::size_t rows) {
  constexpr std::array kStyles = {Style::blue, Style::yellow, Style::green, Style::red};
  const PaintRun paint = [&console, &kStyles](std::size_t run, std::string_view text) {
    return console.styled(kStyles[run % kStyles.size()], text);
  };
  for (std::size_t run = 0; run < sources.size(); ++run) {
    const std::string number = sources.size() > 1 ? fmt::format("{} ", run + 1) : "";
    const std::string name = (number + sources[run].name).substr(0, columns);
    console.say(sources.size() > 1 ? paint(run, name) : console.styled(Style::bold, name));
  }
  const std::size_t left = rows - std::min(rows, sources.size());
  for (const std::string& line : draw_charts(panels, columns, left, paint)) console.say(line);
}

bool show_curves_at_end(Console& console, ssh::Remote& remote,
                        const killfiles::Killfile& killfile) {
  if (!console.is_terminal(To::out) || console.json() || console.quiet()) return false;
  const std::vector<PlotSource> sources = {read_run_source(remote, killfile)};
  std::vector<Panel> panels;
  for (const std::string& metric : usual_metrics(sources)) {
    if (auto panel = make_panel(metric, {sources.front().metrics}, std::nullopt))
      panels.push_back(std::move(*panel));
  }
  if (panels.empty()) return false;
  share_x(panels);
  constexpr std::size_t kRows = 20;  // the last lines of the log stay in sight
  const TerminalSize terminal = terminal_size(STDOUT_FILENO);
  show_charts(console, sources, panels, terminal.columns, std::min(terminal.rows - 1, kRows));
  return true;
}

}  // namespace dtool::cli
