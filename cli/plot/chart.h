// SPDX-License-Identifier: MIT
// Panels drawn with characters: curves in braille, 2 by 4 dots a character, axes with numbers.
// plot.cpp prints them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/plot/panel.h"
#include "cli/plot/plot_sources.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// `text` in the colour of a run, if the terminal supports colours.
using PaintRun = std::function<std::string(std::size_t run, std::string_view text)>;

/// A panel with fewer columns is unreadable.
inline constexpr std::size_t kLeastColumns = 24;
inline constexpr std::size_t kLeastRows = 6;

/// `rows` lines, each `columns` characters wide. If the panel has several curves, each shows its
/// run's number (from 1), so that it can be identified without colours.
std::vector<std::string> draw_chart(const Panel& panel, std::size_t columns, std::size_t rows,
                                    const PaintRun& paint);

/// All panels within `columns` and `rows`, but none below kLeastRows. Three or more panels stand in
/// pairs beside each other if they fit.
std::vector<std::string> draw_charts(const std::vector<Panel>& panels, std::size_t columns,
                                     std::size_t rows, const PaintRun& paint);

// Curves on the terminal: of `dtool plot`, and of a training that `dtool run` has followed to its
// end.

/// Prints the sources' names and the panels within that many characters.
void show_charts(Console& console, const std::vector<PlotSource>& sources,
                 const std::vector<Panel>& panels, std::size_t columns, std::size_t rows);

/// Reads the metrics of a run that has ended and draws the usual ones, if standard output is a
/// terminal and neither --json nor --quiet was given. Returns whether there was a curve; without
/// one nothing is said. `remote` has the hosts of the run.
bool show_curves_at_end(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile);

}  // namespace dtool::cli
