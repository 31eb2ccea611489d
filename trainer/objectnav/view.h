// What is seen from a cell: an egocentric cone in which walls and tall furniture hide what is
// behind them.
#pragma once

#include <cstdint>

#include "trainer/objectnav/house.h"

namespace dtool::trainer {

/// Writes the codes of the `kViewCells` cells of the view from `cell` in the direction `heading`,
/// where objects of class `goal` are kGoalObject. A cell is seen if, of the two straight lines of
/// cells to it (Bresenham's, with halves rounded to the left and to the right), one meets nothing
/// opaque before it.
void look(const House& house, Cell cell, Heading heading, int goal, std::uint8_t* codes);

/// Whether cell `place` of that view (an index of kViewPlaces) is seen.
bool sees(const House& house, Cell cell, Heading heading, int place);

/// The cell that is `place` of the view, which may lie outside the house.
Cell cell_in_view(Cell cell, Heading heading, int place);

}  // namespace dtool::trainer
