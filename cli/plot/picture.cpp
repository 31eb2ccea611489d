// SPDX-License-Identifier: MIT
// A plot as a picture file, which gnuplot draws.
#include "cli/plot/panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include "cli/action.h"
#include "cli/host_output.h"
#include "ssh/fanout/fleet.h"

namespace dtool::cli {

void write_picture(const PictureRequest& request, const std::string& file) {
  const auto here = ssh::make_fleet({ssh::parse_host("local")}, {});
  ssh::Events nobody;
  const ssh::HostResult drawn =
      here->run({{0, ssh::LocalProgram{{"gnuplot", "-"}, gnuplot_script(request)}}}, nobody, {})
          .front();
  if (drawn.failure == ssh::Failure::local_program) {
    throw UsageError("--output needs gnuplot, which is not on this machine",
                     "install Debian's gnuplot-nox; without --output the plot is in the terminal");
  }
  if (!drawn.ok() || drawn.out.empty())
    throw UsageError(fmt::format("gnuplot failed ({}): {}", describe(drawn), drawn.err));
  std::ofstream stream(file, std::ios::binary);
  stream << drawn.out;
  stream.close();
  if (!stream) throw UsageError(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
}

namespace {

/// Told apart with each kind of colour blindness: https://jfly.uni-koeln.de/color/.
constexpr std::array kLineColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#e69f00", "#56b4e9", "#000000"};

constexpr double kPixelsOfLegendLine = 20;
constexpr double kPixelsAbove = 34;
constexpr double kPixelsOfInch = 96;

/// Between single quotes gnuplot reads everything as it is, quotes doubled.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char each : text) {
    const bool is_control = static_cast<unsigned char>(each) < 0x20 || each == 0x7f;
    result += each == '\'' ? "''" : std::string(1, is_control ? '?' : each);
  }
  return result + "'";
}

std::string color_of(std::size_t run) {
  return kLineColors[run % kLineColors.size()];
}

/// A block of data: an empty line is a gap.
std::string data_block(const std::string& name, const PanelCurve& curve, Scale scale) {
  std::string text = fmt::format("${} << END\n", name);
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    const double value = curve.values[i];
    const bool is_drawn = std::isfinite(value) && (scale == Scale::linear || value > 0);
    text += is_drawn ? fmt::format("{} {}\n", curve.x[i], value) : "\n";
  }
  return text + "END\n";
}

std::string ticks(const char* axis, const Axis& of) {
  std::string list;
  for (const Tick& tick : of.ticks)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", quoted(tick.label), tick.at);
  return fmt::format("set {0}range [{1}:{2}]\nset {0}tics ({3})\n", axis, of.low, of.high, list);
}

std::string panel_script(const PictureRequest& request, std::size_t index, std::size_t columns,
                         std::size_t rows) {
  const Panel& panel = request.panels[index];
  const std::size_t width = request.width / columns;
  double low = panel.low;
  double high = panel.high;
  widen(low, high, panel.scale, 0.03);
  const std::size_t height = request.height / rows;
  const Axis values = make_axis(low, high, panel.scale, std::max<std::size_t>(height / 50, 2));
  const Axis across =
      make_axis(panel.low_x, panel.high_x, panel.x_scale(), std::max<std::size_t>(width / 90, 2));
  std::string script;
  std::string plots;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const PanelCurve& curve = panel.curves[i];
    const std::string name = fmt::format("p{}c{}", index, i);
    script += data_block(name, thinned(curve, width), panel.scale);
    // Few points are shown as such.
    const char* style = curve.x.size() <= 30 ? "linespoints pt 7 ps 0.5" : "lines";
    plots += fmt::format("{}${} using 1:2 with {} lw 1.5 lc rgb '{}' notitle",
                         plots.empty() ? "plot " : ", \\\n  ", name, style, color_of(curve.run));
  }
  const std::string log =
      fmt::format("{}set logscale y\n{}set logscale x\n", panel.scale == Scale::log ? "" : "un",
                  panel.x_scale() == Scale::log ? "" : "un");
  const std::string title = panel.title + (panel.scale == Scale::log ? " (log)" : "");
  // The title is a label at the upper end of the axis: not every reader of SVG turns a text. Its
  // number is behind those of the legend.
  const std::size_t label = request.names.size() + 1;
  return fmt::format("{}{}{}{}set label {} {} at graph 0,1 left offset -6,1\n{}\n", script, log,
                     ticks("x", across), ticks("y", values), label, quoted(title), plots);
}

/// Above the panels, so that it lies over no curve. The lines are drawn: many fonts have no
/// character for one.
std::string legend(const PictureRequest& request) {
  std::string script;
  const auto height = static_cast<double>(request.height);
  for (std::size_t run = 0; run < request.names.size(); ++run) {
    const double y = 1 - (16 + kPixelsOfLegendLine * static_cast<double>(run)) / height;
    const auto width = static_cast<double>(request.width);
    const std::string color = color_of(run);
    script += fmt::format(
        "set arrow {0} from screen {1:.4f},{3:.4f} to screen {2:.4f},{3:.4f} nohead lw 2 "
        "lc rgb '{4}'\nset label {0} {5} at screen {6:.4f},{3:.4f} left textcolor rgb '{4}'\n",
        run + 1, 16 / width, 36 / width, y, color, quoted(request.names[run]), 44 / width);
  }
  return script;
}

const char* terminal_of(Picture kind) {
  if (kind == Picture::pdf) return "pdfcairo";
  return kind == Picture::svg ? "svg background '#ffffff'" : "pngcairo";
}

}  // namespace

std::string gnuplot_script(const PictureRequest& request) {
  const std::size_t columns = request.panels.size() > 1 && request.width >= 700 ? 2 : 1;
  const std::size_t rows = (request.panels.size() + columns - 1) / columns;
  const auto width = static_cast<double>(request.width);
  const auto height = static_cast<double>(request.height);
  const double top = kPixelsOfLegendLine * static_cast<double>(request.names.size());
  const std::string size =
      request.kind == Picture::pdf
          ? fmt::format("{:.3f}in,{:.3f}in", width / kPixelsOfInch, height / kPixelsOfInch)
          : fmt::format("{},{}", request.width, request.height);
  const XAxis x_axis = request.panels.empty() ? XAxis::steps : request.panels.front().x_axis;
  const char* x_title = x_axis == XAxis::bytes     ? "bytes"
                        : x_axis == XAxis::seconds ? "seconds"
                                                   : "step";
  std::string script = fmt::format(
      "set encoding utf8\nset terminal {} size {} font 'Sans,11' noenhanced\nset grid "
      "xtics ytics lt 1 lw 0.5 lc rgb '#cccccc'\nset border 3\nset tics nomirror\nset xlabel "
      "'{}' offset 0,0.5\n",
      terminal_of(request.kind), size, x_title);
  script += fmt::format(
      "set multiplot layout {},{} margins {:.4f},{:.4f},{:.4f},{:.4f} spacing {:.4f},{:.4f}\n",
      rows, columns, 70 / width, 1 - 25 / width, 50 / height,
      1 - std::min(top + kPixelsAbove, height / 2) / height, 90 / width, 90 / height);
  script += legend(request);
  for (std::size_t i = 0; i < request.panels.size(); ++i) {
    script += panel_script(request, i, columns, rows);
    if (i == 0) script += "unset label\nunset arrow\n";
  }
  return script + "unset multiplot\n";
}

}  // namespace dtool::cli
