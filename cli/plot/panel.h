// SPDX-License-Identifier: MIT
// The panels of a plot: one per metric, with the curves of all runs. Plain numbers only; chart.cpp
// draws them with characters, picture.cpp as a picture.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/plot/plot_sources.h"

namespace dtool::cli {

// An axis of a plot: the positions of values on it, and the numbers beside it. The terminal's plots
// (chart.cpp) and gnuplot's (picture.cpp) share it.

enum class Scale { linear, log };

struct Tick {
  double at = 0;
  std::string label;  ///< `0.5`, `20k`, `3e-5`
};

struct Axis {
  Scale scale = Scale::linear;
  double low = 0;
  double high = 1;
  std::vector<Tick> ticks;  ///< the ticks in rising order, from low to high

  /// From 0 at low to 1 at high; outside that range for values outside low and high.
  double place(double value) const;
};

/// An axis from `low` to `high` with round numbers on it: at least two, at most `most_ticks`. Equal
/// limits are widened. On a log scale both must be above 0.
Axis make_axis(double low, double high, Scale scale, std::size_t most_ticks);

/// Moves `low` and `high` apart by `part` of their distance on the scale, so that a curve does not
/// lie on the frame.
void widen(double& low, double& high, Scale scale, double part);

/// A run's curve in a panel.
struct PanelCurve {
  std::size_t run = 0;         ///< index of the run; gives its colour and its number in the legend
  std::vector<double> x;       ///< steps, seconds or bytes
  std::vector<double> values;  ///< NaN: a gap
};

/// One metric of all runs. The ranges cover every value that can be drawn.
struct Panel {
  std::string title;
  XAxis x_axis = XAxis::steps;
  Scale scale = Scale::linear;
  double low_x = 0, high_x = 1;
  double low = 0, high = 1;
  std::vector<PanelCurve> curves;

  /// Sizes of messages span decades.
  Scale x_scale() const { return x_axis == XAxis::bytes ? Scale::log : Scale::linear; }
};

/// The panel of one metric; nothing if no run has a number for it. Without a `scale` it is log if
/// all values are above 0 and the largest is a hundred times the smallest. samples_per_s begins at
/// 0, since its noise would otherwise look large; success rates and SPL are shares, from 0 to 1. A
/// run whose lines have no times has no curve over seconds.
std::optional<Panel> make_panel(const std::string& metric, const std::vector<Metrics>& runs,
                                std::optional<Scale> scale, XAxis x_axis = XAxis::steps);

/// Gives all panels the same range of steps, seconds or bytes, so that the same step stands at the
/// same place; from 0 where the first is near it and the scale is linear.
void share_x(std::vector<Panel>& panels);

/// The curve with at most four points for each of `columns` columns (first, lowest, highest and
/// last) and its gaps, so that it looks the same. A shorter curve is returned unchanged.
PanelCurve thinned(const PanelCurve& curve, std::size_t columns);

}  // namespace dtool::cli
