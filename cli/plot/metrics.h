// What a run told of itself: the curves in its metrics.jsonl (docs/experiment.md has the format).
// plot.cpp draws them.
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
  std::string event;  ///< of the lines it is from: `step` for all that are not of an `epoch`
  std::vector<double> steps;   ///< or bytes
  std::vector<double> values;  ///< NaN where the run had no number
  std::vector<double> seconds =
      {};  ///< that the run had gone on for; empty where a line has no time
};

/// A metrics.jsonl that was read.
struct Metrics {
  std::vector<Curve> curves;     ///< one a metric
  std::size_t unread = 0;        ///< lines that are no JSON object of an event
  std::size_t first_unread = 0;  ///< the first of them, from 1
};

/// Reads a metrics.jsonl. A `start` line makes the steps after its own void, as a resumed run tells
/// of them again, unless their time is later; the seconds that they took count, the time until the
/// run was resumed does not. Lines that come late, as those of a validation elsewhere, are put in
/// their place. A last line without its end is still being written, and left out. A metric that
/// both events have is taken from the one that tells more often. Never throws on what it is given.
Metrics read_metrics(std::string_view text);

}  // namespace dtool::cli
