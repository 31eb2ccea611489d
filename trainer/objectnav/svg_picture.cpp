// SPDX-License-Identifier: MIT
// The map, its legend and the title, element by element.
#include "trainer/objectnav/show_rollout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "trainer/objectnav/view.h"

namespace dtool::trainer {
namespace {

/// The colours of the map and of its legend; rooms are coloured by kind.
constexpr const char* kRoomColours[] = {"#f8ecc9", "#dcefd3", "#dbe5f7", "#d3eeee"};
constexpr const char* kWallColour = "#474a57";
constexpr const char* kDoorColour = "#e9d8bd";
constexpr const char* kLowColour = "#c79a64";
constexpr const char* kTallColour = "#7a5433";
constexpr const char* kGoalColour = "#f2b91d";
constexpr const char* kSeenColour = "#ffd84d";

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

/// Of the path: `share` goes from 0, green, at the start to 1, red, at the end.
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

// The house in a picture: floors, walls and doors; furniture, objects and names.

std::string rectangle(double x, double y, double width, double height, const char* colour) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", x, y,
                     width, height, colour);
}

std::string floors(const House& house) {
  std::string text =
      rectangle(0, 0, house.width * kCellPixels, house.height * kCellPixels, kWallColour);
  for (const Room& room : house.rooms()) {
    text += rectangle(room.x * kCellPixels, room.y * kCellPixels, room.width * kCellPixels,
                      room.height * kCellPixels, kRoomColours[static_cast<int>(room.kind)]);
  }
  return text;
}

/// The cells of the grid, faint, over the floors only.
std::string grid(const House& house) {
  std::string text = "<g stroke=\"#000\" stroke-opacity=\"0.06\">\n";
  for (const Room& room : house.rooms()) {
    const int left = room.x * kCellPixels, right = (room.x + room.width) * kCellPixels;
    const int top = room.y * kCellPixels, bottom = (room.y + room.height) * kCellPixels;
    std::string lines;
    for (int x = left + kCellPixels; x < right; x += kCellPixels) {
      lines += fmt::format("M{} {}V{}", x, top, bottom);
    }
    for (int y = top + kCellPixels; y < bottom; y += kCellPixels) {
      lines += fmt::format("M{} {}H{}", left, y, right);
    }
    text += fmt::format("<path d=\"{}\"/>\n", lines);
  }
  return text + "</g>\n";
}

/// Each name is on the wall above the room, where only a door can be.
std::string room_names(const House& house) {
  std::string text = fmt::format(
      "<g font-size=\"14\" font-weight=\"600\" fill=\"#fff\" stroke=\"{}\" stroke-width=\"4\" "
      "style=\"paint-order: stroke\">\n",
      kWallColour);
  for (const Room& room : house.rooms()) {
    text += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", room.x * kCellPixels + 5,
                        room.y * kCellPixels - 13, kRoomNames[static_cast<std::size_t>(room.kind)]);
  }
  return text + "</g>\n";
}

std::string piece(int x, int y, int seen) {
  const double left = x * kCellPixels + 3;
  const double top = y * kCellPixels + 3;
  const int side = kCellPixels - 6;
  if (seen == kLowFurniture) {
    return fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"7\" fill=\"{}\" "
        "stroke=\"#9b7340\"/>\n",
        left, top, side, side, kLowColour);
  }
  return fmt::format(
      "<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{2}\" fill=\"{3}\" stroke=\"#4b321c\"/>"
      "<path d=\"M{0} {1}l{2} {2}m0 {4}l{4} {2}\" stroke=\"#4b321c\" stroke-opacity=\"0.6\"/>\n",
      left, top, side, kTallColour, -side);
}

/// Adds up `draw(x, y, seen)` over the cells of the house.
template <class Draw>
std::string for_cells(const House& house, const Draw& draw) {
  std::string text;
  for (int y = 0; y < house.height; ++y) {
    for (int x = 0; x < house.width; ++x) text += draw(x, y, int{house.seen(cell_at(x, y))});
  }
  return text;
}

std::string doors(const House& house) {
  return for_cells(house, [](int x, int y, int seen) -> std::string {
    if (seen != kDoor) return "";
    return rectangle(x * kCellPixels, y * kCellPixels, kCellPixels, kCellPixels, kDoorColour);
  });
}

std::string furniture(const House& house) {
  return for_cells(house, [](int x, int y, int seen) -> std::string {
    return seen == kLowFurniture || seen == kTallFurniture ? piece(x, y, seen) : "";
  });
}

std::string object_and_name(const Object& object, int goal) {
  const auto [x, y] = middle_of(object.cell);
  const bool is_goal = object.kind == goal;
  return fmt::format(
      "<circle cx=\"{0}\" cy=\"{1}\" r=\"{2}\" fill=\"{3}\" stroke=\"#333\" "
      "stroke-width=\"{4}\"/>\n"
      "<text x=\"{0}\" y=\"{5}\" font-weight=\"{6}\" stroke=\"#fff\" stroke-width=\"3\" "
      "stroke-opacity=\"0.8\" style=\"paint-order: stroke\">{7}</text>\n",
      x, y - 4, is_goal ? 10 : 7, is_goal ? kGoalColour : "#fff", is_goal ? 2 : 1.2, y + 16,
      is_goal ? 700 : 400, kObjectNames[object.kind]);
}

std::string svg_floors(const House& house) {
  return floors(house) + grid(house) + doors(house);
}

std::string svg_things(const House& house, int goal) {
  std::string text = furniture(house) + room_names(house);
  text += "<g font-size=\"10.5\" text-anchor=\"middle\" fill=\"#222\" stroke-linejoin=\"round\">\n";
  for (const Object& object : house.objects()) text += object_and_name(object, goal);
  return text + "</g>\n";
}

}  // namespace

std::string svg_picture(const Trace& trace, const std::string& above) {
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
          svg_path(trace) + above + "</g>\n";
  text += fmt::format("<g transform=\"translate({} {})\" font-size=\"13\" fill=\"#333\">\n{}</g>\n",
                      map_width + 2 * kMargin, kTitleHeight + kMargin + 10, legend());
  return text + "</svg>\n";
}

}  // namespace dtool::trainer
