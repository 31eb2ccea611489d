// SPDX-License-Identifier: MIT
// An axis of a plot: the positions of values on it, and the numbers beside it. The terminal's plots
// (chart.cpp) and gnuplot's (gnuplot.cpp) share it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dtool::cli {

enum class Scale { linear, log };

struct Tick {
  double at = 0;
  std::string label;  ///< `0.5`, `20k`, `3e-5`
};

struct Axis {
  Scale scale = Scale::linear;
  double low = 0;
  double high = 1;
  std::vector<Tick> ticks;  ///< in rising order, from low to high

  /// From 0 at low to 1 at high; outside that range for values outside low and high.
  double place(double value) const;
};

/// An axis from `low` to `high` with round numbers on it: at least two, at most `most_ticks`. Equal
/// limits are widened. On a log scale both must be above 0.
Axis make_axis(double low, double high, Scale scale, std::size_t most_ticks);

/// Moves `low` and `high` apart by `part` of their distance on the scale, so that a curve does not
/// lie on the frame.
void widen(double& low, double& high, Scale scale, double part);

}  // namespace dtool::cli
