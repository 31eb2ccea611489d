#include "cli/panel.h"

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

Scale scale_for(const std::string& metric, const Range& values) {
  constexpr double kDecades = 100;
  const bool spans_decades = values.low > 0 && values.high >= kDecades * values.low;
  return spans_decades && metric != "samples_per_s" ? Scale::log : Scale::linear;
}

void add_curves(Panel& panel, const std::string& metric, const std::vector<Metrics>& runs) {
  Range steps;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (const Curve& curve : runs[run].curves) {
      if (curve.metric != metric) continue;
      for (const double step : curve.steps) steps.add(step);
      panel.curves.push_back({run, curve.steps, curve.values});
    }
  }
  if (steps.is_empty()) return;
  panel.low_step = steps.low;
  panel.high_step = steps.high;
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
    thin.steps.push_back(curve.steps[i]);
    thin.values.push_back(curve.values[i]);
  }
}

}  // namespace

std::optional<Panel> make_panel(const std::string& metric, const std::vector<Metrics>& runs,
                                std::optional<Scale> scale) {
  Panel panel;
  panel.title = metric;
  add_curves(panel, metric, runs);
  panel.scale = scale.value_or(scale_for(metric, values_of(panel, Scale::linear)));
  const Range values = values_of(panel, panel.scale);
  if (values.is_empty()) return std::nullopt;
  panel.low = values.low;
  panel.high = values.high;
  if (metric == "samples_per_s" && panel.scale == Scale::linear && panel.low > 0) panel.low = 0;
  return panel;
}

void share_steps(std::vector<Panel>& panels) {
  Range steps;
  for (const Panel& panel : panels) {
    steps.add(panel.low_step);
    steps.add(panel.high_step);
  }
  constexpr double kNear = 0.1;  // of the steps
  if (steps.low > 0 && steps.low <= kNear * steps.high) steps.low = 0;
  for (Panel& panel : panels) {
    panel.low_step = steps.low;
    panel.high_step = steps.high;
  }
}

PanelCurve thinned(const PanelCurve& curve, std::size_t columns) {
  if (curve.steps.size() <= 4 * columns) return curve;
  PanelCurve thin{curve.run, {}, {}};
  const auto [low, high] = std::ranges::minmax(curve.steps);
  const double width = std::max((high - low) / static_cast<double>(columns), 1e-300);
  const auto column_of = [&](std::size_t i) { return std::floor((curve.steps[i] - low) / width); };
  std::size_t first = 0;
  for (std::size_t i = 1; i <= curve.steps.size(); ++i) {
    if (i < curve.steps.size() && column_of(i) == column_of(first)) continue;
    add_column(thin, curve, first, i - 1);
    first = i;
  }
  return thin;
}

}  // namespace dtool::cli
