// SPDX-License-Identifier: MIT
// The sources of a plot: a metrics.jsonl here, or that of a recorded run, read from its machine 0's
// host. plot.cpp draws them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/host_options.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

// Reads the curves from a run's metrics.jsonl (docs/experiment.md has the format). plot.cpp draws
// them.

/// What the axis below a plot counts: a run's steps, the seconds that it has gone on for, or the
/// bytes of a message.
enum class XAxis { steps, seconds, bytes };

/// One metric of one run, by step.
struct Curve {
  std::string metric;
  std::string event;  ///< the event of the lines that it is from: `epoch`, or `step` for all others
  std::vector<double> steps;   ///< the steps, or bytes
  std::vector<double> values;  ///< NaN if the run had no number
  std::vector<double> seconds =
      {};  ///< seconds that the run had taken so far; empty if a line has no time
};

/// The content of a metrics.jsonl.
struct Metrics {
  std::vector<Curve> curves;     ///< one per metric
  bool is_trainers = false;      ///< the bundled trainer wrote it
  std::size_t unread = 0;        ///< lines that are no JSON object, or whose step is no number
  std::size_t first_unread = 0;  ///< the first of them, counted from 1
};

/// Reads a metrics.jsonl, or any lines that are JSON objects: all their numbers, those of inner
/// objects as `eval.accuracy`, by `step`, `global_step`, `iteration`, `iter` or `epoch`, else by
/// the line. A `start` line voids the later steps before it, since a resumed run
/// reports them again, unless their time is later. The seconds of voided steps count; the time
/// until the run was resumed does not. Late lines, such as a separate validation's, are put in
/// their place. An incomplete last line is still being written and is skipped. A metric that both
/// events have is taken from the one that reports more often. Never throws on bad content.
Metrics read_metrics(std::string_view text);

/// The metrics of a run or a file, or why there are none.
struct PlotSource {
  std::string name;  ///< the run's id, or the file
  /// The result of the host that was asked; a failure says why there are no metrics.
  std::optional<ssh::HostResult> result;
  Metrics metrics;
  /// The metrics are of `dtool-trainer comm`: their curves' steps are bytes.
  bool is_over_bytes = false;
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

// What `dtool-trainer comm` measured: the rows of its comm.jsonl, as curves over the bytes of a
// message.

/// For each algorithm, in the file's order, its curves: `OPERATION_us` (median) and
/// `OPERATION_gb_per_s` (bus bandwidth). Messages between machines are told apart from those within
/// one: `send_recv_2_machines_us`. Nothing where the text has no such rows; other lines and
/// operations without bytes are passed over.
std::vector<std::pair<std::string, Metrics>> read_comm_rows(std::string_view text);

}  // namespace dtool::cli
