// SPDX-License-Identifier: MIT
// Reads the curves from a run's metrics.jsonl (docs/experiment.md has the format). plot.cpp draws
// them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::cli {

/// What the axis below a plot counts: a run's steps, the seconds that it has gone on for, or the
/// bytes of a message (comm_rows.h).
enum class XAxis { steps, seconds, bytes };

/// One metric of one run, by step.
struct Curve {
  std::string metric;
  std::string event;           ///< of the lines that it is from: `epoch`, or `step` for all others
  std::vector<double> steps;   ///< or bytes
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

}  // namespace dtool::cli
