// SPDX-License-Identifier: MIT
#include "cli/plot/panel.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dtool::cli {
namespace {

/// The smallest and the largest of some numbers.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

Range values_of(const Panel& panel, Scale scale) {
  Range range;
  for (const PanelCurve& curve : panel.curves) {
    for (const double value : curve.values) {
      if (std::isfinite(value) && (scale == Scale::linear || value > 0)) range.add(value);
    }
  }
  return range;
}

/// A success rate, or success weighted by path length.
bool is_share(const std::string& metric) {
  return metric.ends_with("_success") || metric.ends_with("_spl");
}

Scale scale_for(const std::string& metric, const Range& values) {
  constexpr double kDecades = 100;
  const bool spans_decades = values.low > 0 && values.high >= kDecades * values.low;
  const bool is_linear = metric == "samples_per_s" || is_share(metric);
  return spans_decades && !is_linear ? Scale::log : Scale::linear;
}

void add_curves(Panel& panel, const std::string& metric, const std::vector<Metrics>& runs) {
  Range range;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (const Curve& curve : runs[run].curves) {
      const auto& x = panel.x_axis == XAxis::seconds ? curve.seconds : curve.steps;
      if (curve.metric != metric || x.empty()) continue;
      for (const double each : x) range.add(each);
      panel.curves.push_back({run, x, curve.values});
    }
  }
  if (range.is_empty()) return;
  panel.low_x = range.low;
  panel.high_x = range.high;
}

/// Points first to last of a curve that fall into one column.
void add_column(PanelCurve& thin, const PanelCurve& curve, std::size_t first, std::size_t last) {
  std::vector<std::size_t> keep = {first, last};
  std::optional<std::size_t> lowest, highest;
  for (std::size_t i = first; i <= last; ++i) {
    if (std::isnan(curve.values[i])) {
      // The first of a gap is enough to break the line.
      if (i == first || !std::isnan(curve.values[i - 1])) keep.push_back(i);
      continue;
    }
    if (!lowest || curve.values[i] < curve.values[*lowest]) lowest = i;
    if (!highest || curve.values[i] > curve.values[*highest]) highest = i;
  }
  if (lowest) keep.push_back(*lowest);
  if (highest) keep.push_back(*highest);
  std::ranges::sort(keep);
  keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
  for (const std::size_t i : keep) {
    thin.x.push_back(curve.x[i]);
    thin.values.push_back(curve.values[i]);
  }
}

}  // namespace

std::optional<Panel> make_panel(const std::string& metric, const std::vector<Metrics>& runs,
                                std::optional<Scale> scale, XAxis x_axis) {
  Panel panel;
  panel.title = metric;
  panel.x_axis = x_axis;
  add_curves(panel, metric, runs);
  panel.scale = scale.value_or(scale_for(metric, values_of(panel, Scale::linear)));
  const Range values = values_of(panel, panel.scale);
  if (values.is_empty()) return std::nullopt;
  panel.low = values.low;
  panel.high = values.high;
  const bool from_0 = metric == "samples_per_s" || is_share(metric);
  if (from_0 && panel.scale == Scale::linear && panel.low > 0) panel.low = 0;
  if (is_share(metric)) panel.high = std::max(panel.high, 1.0);
  return panel;
}

void share_x(std::vector<Panel>& panels) {
  Range range;
  for (const Panel& panel : panels) {
    range.add(panel.low_x);
    range.add(panel.high_x);
  }
  constexpr double kNear = 0.1;  // of the length
  const bool is_linear = !panels.empty() && panels.front().x_scale() == Scale::linear;
  if (is_linear && range.low > 0 && range.low <= kNear * range.high) range.low = 0;
  for (Panel& panel : panels) {
    panel.low_x = range.low;
    panel.high_x = range.high;
  }
}

PanelCurve thinned(const PanelCurve& curve, std::size_t columns) {
  if (curve.x.size() <= 4 * columns) return curve;
  PanelCurve thin{curve.run, {}, {}};
  const auto [low, high] = std::ranges::minmax(curve.x);
  const double width = std::max((high - low) / static_cast<double>(columns), 1e-300);
  const auto column_of = [&](std::size_t i) { return std::floor((curve.x[i] - low) / width); };
  std::size_t first = 0;
  for (std::size_t i = 1; i <= curve.x.size(); ++i) {
    if (i < curve.x.size() && column_of(i) == column_of(first)) continue;
    add_column(thin, curve, first, i - 1);
    first = i;
  }
  return thin;
}

}  // namespace dtool::cli
