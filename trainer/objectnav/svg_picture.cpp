// SPDX-License-Identifier: MIT
#include "trainer/objectnav/svg_picture.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtool::trainer {
namespace {

constexpr int kMargin = 24;
constexpr int kTitleHeight = 84;
constexpr int kLegendWidth = 190;
constexpr int kLegendHeight = 330;

/// For text between tags.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char each : text) {
    if (each == '&') {
      result += "&amp;";
    } else if (each == '<') {
      result += "&lt;";
    } else {
      result += each;
    }
  }
  return result;
}

std::string with_capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  return text;
}

std::string title(const Trace& trace) {
  const auto goal = kObjectNames[static_cast<std::size_t>(trace.last().goal)];
  return fmt::format(
      "<text x=\"{0}\" y=\"40\" font-size=\"24\" font-weight=\"700\" fill=\"#222\">Find the "
      "{1}</text>\n"
      "<text x=\"{0}\" y=\"63\" font-size=\"14\" fill=\"{2}\" font-weight=\"600\">{3}</text>\n"
      "<text x=\"{0}\" y=\"83\" font-size=\"12\" fill=\"#666\">{4}</text>\n",
      kMargin, goal, trace.end.is_success ? "#12774f" : "#b3202a",
      escaped(with_capital(describe_end(trace))), escaped(trace.name));
}

/// A sign and what it means, `row` rows down the legend.
std::string legend_row(int row, const std::string& sign, std::string_view meaning) {
  return fmt::format("<g transform=\"translate(0 {})\">{}<text x=\"30\" y=\"5\">{}</text></g>\n",
                     24 * row, sign, meaning);
}

std::string square(const char* colour, const char* more = "") {
  return fmt::format("<rect x=\"0\" y=\"-8\" width=\"17\" height=\"17\" fill=\"{}\" {}/>", colour,
                     more);
}

std::string legend() {
  std::string text;
  int row = 0;
  for (int kind = 0; kind < kRoomKinds; ++kind) {
    text += legend_row(row++, square(kRoomColours[kind], "stroke=\"#bbb\""),
                       kRoomNames[static_cast<std::size_t>(kind)]);
  }
  text += legend_row(row++, square(kWallColour), "wall");
  text += legend_row(row++, square(kDoorColour, "stroke=\"#bbb\""), "door");
  text +=
      legend_row(row++, square(kLowColour, "rx=\"4\" stroke=\"#9b7340\""), "low: blocks the way");
  text += legend_row(row++, square(kTallColour, "stroke=\"#4b321c\""), "tall: hides, too");
  text += legend_row(
      row++,
      fmt::format("<circle cx=\"8\" cy=\"0\" r=\"8\" fill=\"{}\" stroke=\"#333\"/>", kGoalColour),
      "the goal");
  text += legend_row(row++, "<circle cx=\"8\" cy=\"0\" r=\"7\" fill=\"#128a5a\" stroke=\"#fff\"/>",
                     "start");
  text += legend_row(row++, "<path d=\"M-1 9L8 -9L17 9L8 5Z\" fill=\"#d62246\" stroke=\"#fff\"/>",
                     "the agent at the end");
  text += legend_row(row++, square(kSeenColour, "fill-opacity=\"0.5\""), "seen at the end");
  text +=
      legend_row(row++, "<path d=\"M3 -5l10 10m0 -10l-10 10\" stroke=\"#c00\" stroke-width=\"2\"/>",
                 "the way was blocked");
  return text;
}

}  // namespace

std::string svg_picture(const Trace& trace) {
  const int map_width = trace.house.width * kCellPixels;
  const int map_height = trace.house.height * kCellPixels;
  const int width = std::max(map_width + kLegendWidth, 620) + 3 * kMargin;
  const int height = kTitleHeight + std::max(map_height, kLegendHeight) + 2 * kMargin;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      width, height);
  text += title(trace);
  text += fmt::format("<g transform=\"translate({} {})\">\n", kMargin, kTitleHeight + kMargin);
  text += svg_floors(trace.house) + svg_seen(trace) + svg_things(trace.house, trace.last().goal) +
          svg_path(trace) + "</g>\n";
  text += fmt::format("<g transform=\"translate({} {})\" font-size=\"13\" fill=\"#333\">\n{}</g>\n",
                      map_width + 2 * kMargin, kTitleHeight + kMargin + 10, legend());
  return text + "</svg>\n";
}

}  // namespace dtool::trainer
