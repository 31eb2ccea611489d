// An axis of a plot: where values stand on it, and which numbers are written beside it. The
// terminal's plots (chart.cpp) and gnuplot's (gnuplot.cpp) have the same.
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
  std::vector<Tick> ticks;  ///< in rising order, within low and high

  /// From 0 at low to 1 at high; beyond them for values out of range.
  double place(double value) const;
};

/// An axis from `low` to `high`, widened where they are equal, with round numbers on it: at most
/// `most_ticks`, at least two. Where the scale is log, both must be above 0.
Axis make_axis(double low, double high, Scale scale, std::size_t most_ticks);

/// `low` and `high` moved apart by `part` of their distance, as the scale measures it, so that a
/// curve does not lie on the frame.
void widen(double& low, double& high, Scale scale, double part);

}  // namespace dtool::cli
