// SPDX-License-Identifier: MIT
// The agent's path in an episode's picture, from green at its start to red at its end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "trainer/objectnav/svg_picture.h"
#include "trainer/objectnav/view.h"

namespace dtool::trainer {
namespace {

/// `share` from 0 at the start to 1 at the end.
std::string colour_of(double share) {
  const auto mixed = [&](int from, int to) {
    return static_cast<int>(std::lround(from + (to - from) * share));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(0x12, 0xd6), mixed(0x8a, 0x22),
                     mixed(0x5a, 0x46));
}

/// The cells that the agent came through, each time a little beside the last, so that a way back
/// does not lie on the way there.
std::vector<Pixel> points_of(const Trace& trace) {
  std::vector<Pixel> points;
  std::map<Cell, int> visits;
  Cell before = -1;
  for (const Episode& each : trace.episodes) {
    if (each.cell == before) continue;
    before = each.cell;
    const double aside = 4.0 * std::min(visits[each.cell]++, 3);
    const auto [x, y] = middle_of(each.cell);
    points.push_back({x + aside, y + aside});
  }
  return points;
}

std::string segment(Pixel from, Pixel to, const std::string& colour) {
  std::string text =
      fmt::format("<path d=\"M{} {}L{} {}\" stroke=\"{}\"/>\n", from.x, from.y, to.x, to.y, colour);
  const double angle = std::atan2(to.y - from.y, to.x - from.x) * 180 / M_PI;
  return text + fmt::format(
                    "<path d=\"M-4 -5L3 0L-4 5\" fill=\"none\" stroke-width=\"2.4\" "
                    "stroke=\"{}\" transform=\"translate({} {}) rotate({:.1f})\"/>\n",
                    colour, (from.x + to.x) / 2, (from.y + to.y) / 2, angle);
}

/// Where the way was blocked, a small cross at the obstacle's side of the cell.
std::string collisions(const Trace& trace) {
  std::string text;
  for (std::size_t step = 0; step < trace.moves.size(); ++step) {
    if (!was_blocked(trace, step)) continue;
    const Episode& here = trace.episodes[step];
    const auto from = middle_of(here.cell);
    const auto to =
        middle_of(static_cast<Cell>(here.cell + kAhead[static_cast<std::size_t>(here.heading)]));
    text += fmt::format("<path d=\"M{} {}m-3 -3l6 6m0 -6l-6 6\" stroke=\"#c00\"/>\n",
                        from.x + (to.x - from.x) * 0.42, from.y + (to.y - from.y) * 0.42);
  }
  return text;
}

/// A wedge that points where the body does, and an eye on the side that the head looks to.
std::string agent(const Trace& trace) {
  const Episode& last = trace.last();
  const auto [x, y] = middle_of(last.cell);
  return fmt::format(
      "<g transform=\"translate({} {})\"><path transform=\"rotate({})\" d=\"M0 -14L10 11L0 6L-10 "
      "11Z\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"1.5\"/><circle transform=\"rotate({})\" "
      "cx=\"0\" cy=\"-5\" r=\"2.6\" fill=\"#fff\"/></g>\n",
      x, y, 90 * last.heading, colour_of(1), 90 * view_heading(last));
}

}  // namespace

std::string svg_seen(const Trace& trace) {
  const Episode& last = trace.last();
  std::string text = fmt::format("<g fill=\"{}\" fill-opacity=\"0.45\">\n", kSeenColour);
  for (int place = 0; place < kViewCells; ++place) {
    const Heading heading = view_heading(last);
    if (!sees(trace.house, last.cell, heading, place)) continue;
    const Cell cell = cell_in_view(last.cell, heading, place);
    text +=
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                    x_of(cell) * kCellPixels, y_of(cell) * kCellPixels, kCellPixels, kCellPixels);
  }
  return text + "</g>\n";
}

std::string svg_path(const Trace& trace) {
  const auto points = points_of(trace);
  std::string text = "<g fill=\"none\" stroke-width=\"3.2\" stroke-linecap=\"round\">\n";
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(points.size() - 1);
    text += segment(points[i], points[i + 1], colour_of(share));
  }
  text += collisions(trace) + "</g>\n";
  text += fmt::format(
      "<circle cx=\"{}\" cy=\"{}\" r=\"8\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"2\"/>\n",
      points.front().x, points.front().y, colour_of(0));
  return text + agent(trace);
}

}  // namespace dtool::trainer
