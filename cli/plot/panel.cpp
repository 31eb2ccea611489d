// SPDX-License-Identifier: MIT
#include "cli/plot/panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
  constexpr double kNear = 0.1;  // the share of the length that counts as near
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

namespace {

/// Room for what arithmetic with doubles loses.
constexpr double kSlack = 1e-9;

int power_of(double value) {
  return static_cast<int>(std::floor(std::log10(value) + kSlack));
}

/// `2.50e-04` as `2.50e-4`.
std::string scientific(double value, int decimals) {
  std::string text = fmt::format("{:.{}e}", value, decimals);
  std::size_t at = text.find('e') + 1;
  if (text[at] == '+') text.erase(at, 1);
  if (text[at] == '-') ++at;
  while (text[at] == '0' && at + 1 < text.size()) text.erase(at, 1);
  return text;
}

/// `value` told apart from its neighbours, `step` away; `most` is the largest on the axis.
std::string label_of(double value, double step, double most) {
  if (std::abs(value) < step * kSlack) return "0";
  constexpr std::array kUnits = {"", "k", "M", "G", "T"};
  const int unit = most < 1e4 ? 0 : power_of(most) / 3;
  const double scale = std::pow(1000.0, unit);
  const int decimals = std::max(0, -power_of(step / scale));
  constexpr int kMostDecimals = 4;  // longer ones are read more easily as 2e-5
  if (unit >= static_cast<int>(kUnits.size()) || decimals > kMostDecimals)
    return scientific(value, std::max(0, power_of(std::abs(value)) - power_of(step)));
  return fmt::format("{:.{}f}{}", value / scale, decimals, kUnits[static_cast<std::size_t>(unit)]);
}

std::vector<Tick> linear_ticks(double low, double high, double step) {
  std::vector<Tick> ticks;
  const double slack = (high - low) * kSlack;
  const double most = std::max(std::abs(low), std::abs(high));
  for (double n = std::ceil((low - slack) / step); n * step <= high + slack; ++n)
    ticks.push_back({n * step, label_of(n * step, step, most)});
  return ticks;
}

/// The finest of the steps 1, 2 and 5 times a power of ten that gives no more ticks than wanted.
std::vector<Tick> linear_ticks(double low, double high, std::size_t most) {
  const int power = power_of((high - low) / static_cast<double>(most)) - 1;
  std::vector<Tick> coarser;
  for (int i = 9; i >= 0; --i) {
    const double step =
        std::array{1.0, 2.0, 5.0}[static_cast<std::size_t>(i % 3)] * std::pow(10.0, power + i / 3);
    std::vector<Tick> ticks = linear_ticks(low, high, step);
    if (ticks.size() > most && coarser.size() >= 2) break;
    coarser = std::move(ticks);
    if (coarser.size() > most) break;
  }
  return coarser;
}

/// Every `stride`-th power of ten, times each of the digits.
std::vector<Tick> decades(double low, double high, int stride, const std::vector<double>& digits) {
  std::vector<Tick> ticks;
  for (int power = power_of(low) - 1; power <= power_of(high) + 1; ++power) {
    for (const double digit : digits) {
      const double at = digit * std::pow(10.0, power);
      if (at < low * (1 - kSlack) || at > high * (1 + kSlack) || power % stride != 0) continue;
      ticks.push_back({at, label_of(at, at, at)});
    }
  }
  return ticks;
}

std::vector<Tick> log_ticks(double low, double high, std::size_t most) {
  std::vector<Tick> fine = decades(low, high, 1, {1, 2, 5});
  if (fine.size() < 2) return linear_ticks(low, high, most);
  if (fine.size() <= most) return fine;
  for (int stride = 1;; ++stride) {
    std::vector<Tick> ticks = decades(low, high, stride, {1});
    if (ticks.size() < 2) return stride == 1 ? fine : decades(low, high, stride - 1, {1});
    if (ticks.size() <= most) return ticks;
  }
}

}  // namespace

double Axis::place(double value) const {
  if (scale == Scale::linear) return (value - low) / (high - low);
  return std::log(value / low) / std::log(high / low);
}

void widen(double& low, double& high, Scale scale, double part) {
  if (scale == Scale::log) {
    const double factor = std::pow(high / low, part);
    low /= factor;
    high *= factor;
  } else {
    const double distance = (high - low) * part;
    low -= distance;
    high += distance;
  }
}

Axis make_axis(double low, double high, Scale scale, std::size_t most_ticks) {
  // A constant, or all but one: numbers beside it could not be told apart.
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low <= size * kSlack) {
    const double around = size > 0 ? size / 10 : 1;
    low -= around;
    high += around;
  }
  Axis axis{scale, low, high, {}};
  const std::size_t most = std::max<std::size_t>(most_ticks, 2);
  axis.ticks = scale == Scale::log ? log_ticks(low, high, most) : linear_ticks(low, high, most);
  return axis;
}

}  // namespace dtool::cli
