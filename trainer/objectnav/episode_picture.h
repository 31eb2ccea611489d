// SPDX-License-Identifier: MIT
// An episode as a picture in one self-contained file: the house from above with the agent's path.
#pragma once

#include <string>

#include "trainer/objectnav/episode.h"

namespace dtool::trainer {

/// An SVG file. `above` are elements that lie on the map, whose corner is at (0, 0).
std::string svg_picture(const Trace& trace, const std::string& above = "");

/// A page: the map, and beside it what the camera sees in each step, its colours and to their right
/// the depths. A small script plays it.
std::string html_picture(const Trace& trace);

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

}  // namespace dtool::trainer
