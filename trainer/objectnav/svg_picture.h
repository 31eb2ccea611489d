// An episode as a picture: the house from above and the agent's path through it, in an SVG file
// that needs nothing beside it.
#pragma once

#include <string>

#include "trainer/objectnav/trace.h"

namespace dtool::trainer {

/// The whole file.
std::string svg_picture(const Trace& trace);

/// The parts of it, in their order, each its elements; the map's corner is at (0, 0). The floors,
/// walls and doors; what the agent sees at the end; furniture, objects and names; the agent's path.
std::string svg_floors(const House& house);
std::string svg_seen(const Trace& trace);
std::string svg_things(const House& house, int goal);
std::string svg_path(const Trace& trace);

/// The side of a cell in pixels.
inline constexpr int kCellPixels = 38;

/// Where a cell is: its middle.
struct Pixel {
  double x;
  double y;
};
constexpr Pixel middle_of(Cell cell) {
  return {(x_of(cell) + 0.5) * kCellPixels, (y_of(cell) + 0.5) * kCellPixels};
}

/// The colours of the map and of its legend; the rooms' are by kind.
inline constexpr const char* kRoomColours[] = {"#f8ecc9", "#dcefd3", "#dbe5f7", "#d3eeee"};
inline constexpr const char* kWallColour = "#474a57";
inline constexpr const char* kDoorColour = "#e9d8bd";
inline constexpr const char* kLowColour = "#c79a64";
inline constexpr const char* kTallColour = "#7a5433";
inline constexpr const char* kGoalColour = "#f2b91d";
inline constexpr const char* kSeenColour = "#ffd84d";

}  // namespace dtool::trainer
