// SPDX-License-Identifier: MIT
// The panels of a plot: one per metric, with the curves of all runs; and how they are drawn, with
// characters (chart.cpp) or as a picture (picture.cpp).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/plot/plot_sources.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

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

// Panels drawn with characters: curves in braille, 2 by 4 dots a character, axes with numbers.

/// `text` in the colour of a run, if the terminal supports colours.
using PaintRun = std::function<std::string(std::size_t run, std::string_view text)>;

/// A panel with fewer columns is unreadable.
inline constexpr std::size_t kLeastColumns = 24;
inline constexpr std::size_t kLeastRows = 6;

/// `rows` lines, each `columns` characters wide. If the panel has several curves, each shows its
/// run's number (from 1), so that it can be identified without colours.
std::vector<std::string> draw_chart(const Panel& panel, std::size_t columns, std::size_t rows,
                                    const PaintRun& paint);

/// All panels within `columns` and `rows`, but none below kLeastRows. Three or more panels stand in
/// pairs beside each other if they fit.
std::vector<std::string> draw_charts(const std::vector<Panel>& panels, std::size_t columns,
                                     std::size_t rows, const PaintRun& paint);

// Curves on the terminal: of `dtool plot`, and of a training that `dtool run` has followed to its
// end.

/// Prints the sources' names and the panels within that many characters.
void show_charts(Console& console, const std::vector<PlotSource>& sources,
                 const std::vector<Panel>& panels, std::size_t columns, std::size_t rows);

/// Reads the metrics of a run that has ended and draws the usual ones, if standard output is a
/// terminal and neither --json nor --quiet was given. Returns whether there was a curve; without
/// one nothing is said. `remote` has the hosts of the run.
bool show_curves_at_end(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile);

// A plot as a picture: the script for gnuplot, which draws the picture file.

// A plot as a picture: the script for gnuplot. picture.cpp runs gnuplot.

enum class Picture { svg, png, pdf };

/// The data of a picture. `names`: the runs' names in the legend.
struct PictureRequest {
  Picture kind = Picture::svg;
  std::size_t width = 1200;  ///< pixels, of which a PDF has 96 to an inch
  std::size_t height = 800;
  std::vector<std::string> names;
  std::vector<Panel> panels;
};

/// The script; it makes gnuplot write the picture to standard output. Curves are thinned to the
/// picture's resolution. Names may hold any character.
std::string gnuplot_script(const PictureRequest& request);

/// Draws the picture into `file`. Throws UsageError if gnuplot is missing or fails, or if the file
/// cannot be written.
void write_picture(const PictureRequest& request, const std::string& file);

}  // namespace dtool::cli
