// SPDX-License-Identifier: MIT
// Curves on the terminal: of `dtool plot`, and of a training that `dtool run` has followed to its
// end.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/console.h"
#include "cli/plot/panel.h"
#include "cli/plot/plot_sources.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Prints the sources' names and the panels within that many characters.
void show_charts(Console& console, const std::vector<PlotSource>& sources,
                 const std::vector<Panel>& panels, std::size_t columns, std::size_t rows);

/// Reads the metrics of a run that has ended and draws the usual ones, if standard output is a
/// terminal and neither --json nor --quiet was given. Returns whether there was a curve; without
/// one nothing is said. `remote` has the hosts of the run.
bool show_curves_at_end(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile);

}  // namespace dtool::cli
