// SPDX-License-Identifier: MIT
// An episode as a picture: the house from above and the agent's path in it, in a self-contained SVG
// file.
#pragma once

#include <string>

#include "trainer/objectnav/episode.h"

namespace dtool::trainer {

/// The whole file. `above` are elements that lie on the map, whose corner is at (0, 0).
std::string svg_picture(const Trace& trace, const std::string& above = "");

/// The parts of the file in their order, each with its elements; the map's corner is at (0, 0). The
/// floors, walls and doors; what the agent sees at the end; furniture, objects and names; the
/// agent's path.
/// walls and doors; what the agent sees at the end; furniture, objects and names; the agent's path.
std::string svg_floors(const House& house);
std::string svg_seen(const Trace& trace);
std::string svg_things(const House& house, int goal);
std::string svg_path(const Trace& trace);

/// The side of a cell in pixels.
inline constexpr int kCellPixels = 38;

/// The middle of a cell.
struct Pixel {
  double x;
  double y;
};
constexpr Pixel middle_of(Cell cell) {
  return {(x_of(cell) + 0.5) * kCellPixels, (y_of(cell) + 0.5) * kCellPixels};
}

/// The colours of the map and of its legend; rooms are coloured by kind.
inline constexpr const char* kRoomColours[] = {"#f8ecc9", "#dcefd3", "#dbe5f7", "#d3eeee"};
inline constexpr const char* kWallColour = "#474a57";
inline constexpr const char* kDoorColour = "#e9d8bd";
inline constexpr const char* kLowColour = "#c79a64";
inline constexpr const char* kTallColour = "#7a5433";
inline constexpr const char* kGoalColour = "#f2b91d";
inline constexpr const char* kSeenColour = "#ffd84d";

}  // namespace dtool::trainer
