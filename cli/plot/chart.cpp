// SPDX-License-Identifier: MIT
// Panels drawn with characters, for terminals.
#include "cli/plot/panel.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

namespace dtool::cli {

namespace {

constexpr std::size_t kDotsAcross = 2;  // the dots across one character
constexpr std::size_t kDotsDown = 4;

/// A character of the drawing: dots, or a mark in their place.
struct Cell {
  std::uint8_t dots = 0;
  std::size_t run = 0;
  std::string mark;
};

/// Braille patterns begin at U+2800, a bit a dot: three bytes of UTF-8.
std::string braille(std::uint8_t dots) {
  const unsigned code = 0x2800U + dots;
  return {static_cast<char>(0xE0U | (code >> 12U)),
          static_cast<char>(0x80U | ((code >> 6U) & 0x3FU)),
          static_cast<char>(0x80U | (code & 0x3FU))};
}

class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows) : columns_(columns), cells_(columns * rows) {
    width_ = static_cast<long>(columns * kDotsAcross);
    height_ = static_cast<long>(rows * kDotsDown);
  }

  long width() const { return width_; }
  long height() const { return height_; }

  void dot(long x, long y, std::size_t run);
  void line(long x, long y, long to_x, long to_y, std::size_t run);
  /// In place of the character that holds this dot.
  void mark(long x, long y, std::size_t run, std::string text);
  std::string row(std::size_t row, const PaintRun& paint) const;

 private:
  Cell& cell(long x, long y) {
    const auto column = static_cast<std::size_t>(x) / kDotsAcross;
    return cells_[static_cast<std::size_t>(y) / kDotsDown * columns_ + column];
  }

  std::size_t columns_;
  long width_ = 0;  ///< the width in dots
  long height_ = 0;
  std::vector<Cell> cells_;
};

void Canvas::dot(long x, long y, std::size_t run) {
  // https://www.unicode.org/charts/PDF/U2800.pdf: the fourth row was added later.
  constexpr std::array<std::array<std::uint8_t, kDotsAcross>, kDotsDown> kBits = {
      {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
  Cell& at = cell(x, y);
  at.dots |=
      kBits[static_cast<std::size_t>(y) % kDotsDown][static_cast<std::size_t>(x) % kDotsAcross];
  at.run = run;
}

void Canvas::line(long x, long y, long to_x, long to_y, std::size_t run) {
  const long steps = std::max({std::labs(to_x - x), std::labs(to_y - y), 1L});
  for (long i = 0; i <= steps; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(steps);
    dot(x + std::lround(part * static_cast<double>(to_x - x)),
        y + std::lround(part * static_cast<double>(to_y - y)), run);
  }
}

void Canvas::mark(long x, long y, std::size_t run, std::string text) {
  Cell& at = cell(x, y);
  at.mark = std::move(text);
  at.run = run;
}

std::string Canvas::row(std::size_t row, const PaintRun& paint) const {
  std::string text;
  const Cell* const begin = &cells_[row * columns_];
  for (const Cell* each = begin; each != begin + columns_;) {
    const std::size_t run = each->run;
    std::string piece;
    for (; each != begin + columns_ && each->run == run; ++each)
      piece += !each->mark.empty() ? each->mark : each->dots == 0 ? " " : braille(each->dots);
    text += piece.find_first_not_of(' ') == piece.npos ? piece : paint(run, piece);
  }
  return text;
}

/// The panel's ranges on a canvas of dots, the lowest value at the bottom.
struct Frame {
  Axis across;
  Axis values;
  const Canvas& canvas;

  long x(double at) const { return spread(across.place(at), canvas.width()); }
  long y(double value) const {
    return canvas.height() - 1 - spread(values.place(value), canvas.height());
  }
  bool holds(double value) const {
    return std::isfinite(value) && (values.scale == Scale::linear || value > 0);
  }

 private:
  static long spread(double part, long dots) {
    return std::clamp(std::lround(part * static_cast<double>(dots - 1)), 0L, dots - 1);
  }
};

void draw_curve(Canvas& canvas, const Frame& frame, const PanelCurve& curve) {
  bool is_joined = false;  // whether the point before was drawn
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    if (!frame.holds(curve.values[i])) {
      is_joined = false;
      continue;
    }
    const long x = frame.x(curve.x[i]);
    const long y = frame.y(curve.values[i]);
    const bool goes_on = i + 1 < curve.x.size() && frame.holds(curve.values[i + 1]);
    if (is_joined) {
      canvas.line(frame.x(curve.x[i - 1]), frame.y(curve.values[i - 1]), x, y, curve.run);
    } else if (!goes_on) {
      canvas.mark(x, y, curve.run, "•");  // alone, a dot would not be seen
    }
    is_joined = true;
  }
}

/// The run's number, at places along its curve that other runs' numbers are not at.
void number_curve(Canvas& canvas, const Frame& frame, const PanelCurve& curve, std::size_t curves) {
  constexpr std::size_t kPlaces = 3;
  constexpr std::size_t kOneDigit = 9;
  if (curve.run >= kOneDigit) return;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    const std::size_t part = place * curves + curve.run % curves + 1;
    const std::size_t i = part * (curve.x.size() - 1) / (kPlaces * curves);
    if (!frame.holds(curve.values[i])) continue;
    canvas.mark(frame.x(curve.x[i]), frame.y(curve.values[i]), curve.run,
                std::to_string(curve.run + 1));
  }
}

/// `│`, `┤` where a number is, and the numbers before them.
std::vector<std::string> left_side(const Frame& frame, std::size_t rows, std::size_t label_width) {
  std::vector<std::string> lines(rows, std::string(label_width, ' ') + "│");
  for (const Tick& tick : frame.values.ticks) {
    const auto row = static_cast<std::size_t>(frame.y(tick.at)) / kDotsDown;
    lines[row] = fmt::format("{:>{}}┤", tick.label, label_width);
  }
  return lines;
}

std::string_view unit_of(XAxis x_axis) {
  if (x_axis == XAxis::bytes) return "byte";
  return x_axis == XAxis::steps ? "step" : "s";
}

/// The axis below and its numbers; their unit is on the left.
std::array<std::string, 2> below(const Frame& frame, XAxis x_axis, std::size_t columns,
                                 std::size_t label_width) {
  std::vector<bool> has_tick(columns, false);
  std::string numbers = fmt::format("{:>{}} ", unit_of(x_axis), label_width);
  for (const Tick& tick : frame.across.ticks) {
    const auto column = static_cast<std::size_t>(frame.x(tick.at)) / kDotsAcross;
    const std::size_t size = tick.label.size();
    // Centred, as far as the edges let it be.
    const std::size_t centred = label_width + 1 + column - std::min(column, (size - 1) / 2);
    const std::size_t begin =
        std::min(centred, label_width + 1 + columns - std::min(size, columns));
    const bool is_free = numbers.size() == label_width + 1 || numbers.size() < begin;
    if (!is_free || begin < numbers.size()) continue;
    numbers.append(begin - numbers.size(), ' ').append(tick.label);
    has_tick[column] = true;
  }
  numbers.resize(label_width + 1 + columns, ' ');
  std::string line = std::string(label_width, ' ') + "└";
  for (const bool tick : has_tick) line += tick ? "┬" : "─";
  return {line, numbers};
}

/// The newest number of a panel's only curve.
std::string last_value(const Panel& panel) {
  if (panel.curves.size() != 1) return "";
  const std::vector<double>& values = panel.curves.front().values;
  const auto last = std::find_if(values.rbegin(), values.rend(),
                                 [](double value) { return std::isfinite(value); });
  if (last == values.rend()) return "";
  return std::abs(*last) >= 1000 ? fmt::format("{:.0f}", *last) : fmt::format("{:.4g}", *last);
}

std::string title_line(const Panel& panel, std::size_t columns, std::size_t label_width) {
  const std::size_t room = columns - label_width - 1;
  std::string title = panel.title + (panel.scale == Scale::log ? " (log)" : "");
  const std::string last = last_value(panel);
  if (!last.empty() && title.size() + last.size() + 7 <= room)
    title += fmt::format("{:>{}}", "last " + last, room - title.size());
  return fmt::format("{:{}}{:<{}}", "", label_width + 1, cut(title, room), room);
}

}  // namespace

std::vector<std::string> draw_chart(const Panel& panel, std::size_t columns, std::size_t rows,
                                    const PaintRun& paint) {
  columns = std::max(columns, kLeastColumns);
  rows = std::max(rows, kLeastRows);
  const std::size_t inner_rows = rows - 3;  // the title, the axis, its numbers
  double low = panel.low;
  double high = panel.high;
  widen(low, high, panel.scale, 0.02);
  const Axis values = make_axis(low, high, panel.scale, (inner_rows + 2) / 3);
  std::size_t label_width = 4;
  for (const Tick& tick : values.ticks) label_width = std::max(label_width, tick.label.size());

  const std::size_t inner_columns = columns - label_width - 1;
  Canvas canvas(inner_columns, inner_rows);
  const Frame frame{make_axis(panel.low_x, panel.high_x, panel.x_scale(), inner_columns / 9),
                    values, canvas};
  for (const PanelCurve& curve : panel.curves) draw_curve(canvas, frame, curve);
  if (panel.curves.size() > 1) {
    for (const PanelCurve& curve : panel.curves)
      number_curve(canvas, frame, curve, panel.curves.size());
  }

  std::vector<std::string> lines = {title_line(panel, columns, label_width)};
  const std::vector<std::string> left = left_side(frame, inner_rows, label_width);
  for (std::size_t row = 0; row < inner_rows; ++row)
    lines.push_back(left[row] + canvas.row(row, paint));
  for (std::string& line : below(frame, panel.x_axis, inner_columns, label_width))
    lines.push_back(line);
  return lines;
}

std::vector<std::string> draw_charts(const std::vector<Panel>& panels, std::size_t columns,
                                     std::size_t rows, const PaintRun& paint) {
  constexpr std::size_t kBetween = 2;
  const bool is_wide = columns >= 2 * kLeastColumns + kBetween;
  const std::size_t beside = panels.size() > 2 && is_wide ? 2 : 1;
  const std::size_t height = rows / std::max<std::size_t>((panels.size() + beside - 1) / beside, 1);
  const std::size_t width = (columns - kBetween * (beside - 1)) / beside;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < panels.size(); i += beside) {
    std::vector<std::string> drawn = draw_chart(panels[i], width, height, paint);
    if (i + 1 < std::min(panels.size(), i + beside)) {
      const auto right = draw_chart(panels[i + 1], width, height, paint);
      for (std::size_t row = 0; row < drawn.size(); ++row)
        drawn[row] += std::string(kBetween, ' ') + right[row];
    }
    lines.insert(lines.end(), drawn.begin(), drawn.end());
  }
  return lines;
}

void show_charts(Console& console, const std::vector<PlotSource>& sources,
                 const std::vector<Panel>& panels, std::size_t columns, std::size_t rows) {
  constexpr std::array kStyles = {Style::blue, Style::yellow, Style::green, Style::red};
  const PaintRun paint = [&console, &kStyles](std::size_t run, std::string_view text) {
    return console.styled(kStyles[run % kStyles.size()], text);
  };
  for (std::size_t run = 0; run < sources.size(); ++run) {
    const std::string number = sources.size() > 1 ? fmt::format("{} ", run + 1) : "";
    const std::string name = cut(number + sources[run].name, columns);
    console.say(sources.size() > 1 ? paint(run, name) : console.styled(Style::bold, name));
  }
  const std::size_t left = rows - std::min(rows, sources.size());
  for (const std::string& line : draw_charts(panels, columns, left, paint)) console.say(line);
}

bool show_curves_at_end(Console& console, ssh::Remote& remote,
                        const killfiles::Killfile& killfile) {
  if (!console.is_terminal(To::out) || console.json() || console.quiet()) return false;
  const std::vector<PlotSource> sources = {read_run_source(remote, killfile)};
  std::vector<Panel> panels;
  for (const std::string& metric : usual_metrics(sources)) {
    if (auto panel = make_panel(metric, {sources.front().metrics}, std::nullopt))
      panels.push_back(std::move(*panel));
  }
  if (panels.empty()) return false;
  share_x(panels);
  constexpr std::size_t kRows = 20;  // the last lines of the log stay in sight
  const TerminalSize terminal = terminal_size(STDOUT_FILENO);
  show_charts(console, sources, panels, terminal.columns, std::min(terminal.rows - 1, kRows));
  return true;
}

}  // namespace dtool::cli
