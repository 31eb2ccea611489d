// The sources of a plot: a metrics.jsonl here, or that of a recorded run, read from its machine 0's
// host. plot.cpp draws them.
#pragma once

#include <optional>
#include <string>

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
};

/// Reads a file. Throws UsageError if it cannot be read or has no numbers.
PlotSource read_file_source(const std::string& file);

/// Reads only the run's metrics.jsonl from its machine 0; `remote` has the hosts of the run.
PlotSource read_run_source(ssh::Remote& remote, const killfiles::Killfile& killfile);

/// The newest recorded run that has outputs (a set-up has none). Throws UsageError if there is
/// none.
killfiles::Killfile newest_run_with_outputs();

}  // namespace dtool::cli
