// SPDX-License-Identifier: MIT
// The sources of a plot: a metrics.jsonl here, or that of a recorded run, read from its machine 0's
// host. plot.cpp draws them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/plot/metrics.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// The metrics of a run or a file, or why there are none.
struct PlotSource {
  std::string name;                       ///< the run's id, or the file
  std::optional<ssh::HostResult> result;  ///< of the host that was asked; a failure says why there
                                          ///< are no metrics
  Metrics metrics;
  bool is_over_bytes = false;  ///< of `dtool-trainer comm`: its curves' steps are bytes
};

/// Reads a file: one source, or for the rows of `dtool-trainer comm` one an algorithm. Throws
/// UsageError where it cannot be read or has no numbers.
std::vector<PlotSource> read_file_sources(const std::string& file);

/// Reads only the run's metrics.jsonl from its machine 0; `remote` has the hosts of the run.
PlotSource read_run_source(ssh::Remote& remote, const killfiles::Killfile& killfile);

/// The metrics that any of the sources has, in the order in which they come.
std::vector<std::string> known_metrics(const std::vector<PlotSource>& sources);

/// The metrics that most want to see of these sources, in their order; of another program's, which
/// has other names, the first four. None: there are no numbers.
std::vector<std::string> usual_metrics(const std::vector<PlotSource>& sources);

/// The newest recorded run that has outputs (a set-up has none). Throws UsageError if there is
/// none.
killfiles::Killfile newest_run_with_outputs();

}  // namespace dtool::cli
