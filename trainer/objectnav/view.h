// SPDX-License-Identifier: MIT
// What is seen from a cell: an egocentric cone in which walls and tall furniture hide the cells
// behind them.
#pragma once

#include <cstdint>

#include "trainer/objectnav/house.h"

namespace dtool::trainer {

/// Writes the codes of the `kViewCells` cells of the view from `cell` in the direction `heading`;
/// objects of class `goal` become kGoalObject. Two straight lines of cells lead to a cell
/// (Bresenham's, with halves rounded to the left and to the right). The cell is seen if at least
/// one of them meets nothing opaque before it.
void look(const House& house, Cell cell, Heading heading, int goal, std::uint8_t* codes);

/// Whether cell `place` of that view (an index of kViewPlaces) is seen.
bool sees(const House& house, Cell cell, Heading heading, int place);

/// The cell at `place` of the view; it may lie outside the house.
Cell cell_in_view(Cell cell, Heading heading, int place);

}  // namespace dtool::trainer
