// SPDX-License-Identifier: MIT
// The panels of a plot: one per metric, with the curves of all runs. Plain numbers only; chart.cpp
// draws them with characters, gnuplot.cpp as a picture.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/plot/axis.h"
#include "cli/plot/metrics.h"

namespace dtool::cli {

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
