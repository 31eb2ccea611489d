// SPDX-License-Identifier: MIT
// The house in a picture: floors, walls and doors; furniture, objects and names.
#include <fmt/format.h>

#include "trainer/objectnav/svg_picture.h"

namespace dtool::trainer {
namespace {

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

}  // namespace

std::string svg_floors(const House& house) {
  return floors(house) + grid(house) + doors(house);
}

std::string svg_things(const House& house, int goal) {
  std::string text = furniture(house) + room_names(house);
  text += "<g font-size=\"10.5\" text-anchor=\"middle\" fill=\"#222\" stroke-linejoin=\"round\">\n";
  for (const Object& object : house.objects()) text += object_and_name(object, goal);
  return text + "</g>\n";
}

}  // namespace dtool::trainer
