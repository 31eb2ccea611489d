// SPDX-License-Identifier: MIT
// What is seen from a cell: an egocentric cone in which walls and tall furniture hide the cells
// behind them. And the ways to where a goal is seen.
#pragma once

#include <array>
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

// Distances to a goal, and where it is reached. The reward's shaping, SPL and the policy `shortest`
// use these fields.

inline constexpr std::uint16_t kUnreachable = 0xffff;

/// For one class of objects in one house, indexed by cell.
struct GoalField {
  /// Steps of move_ahead to the nearest cell from which success is possible; 0 in such a cell;
  /// kUnreachable in cells that are not free.
  std::array<std::uint16_t, kGridCells> distance;
  /// Bit h: an object of the class is seen in direction h within the success distance.
  std::array<std::uint8_t, kGridCells> success_headings;
};

/// Fills `field` for the objects of class `goal`, by breadth-first search. Allocates nothing.
void find_paths(const EnvironmentSettings& settings, const House& house, int goal,
                GoalField& field);

/// Whether an object in `cell` is seen from some free cell within the success distance.
bool can_be_found(const EnvironmentSettings& settings, const House& house, Cell cell);

/// Whether place `place` of the view (an index of kViewPlaces) is within the success distance,
/// measured between the centres of the agent's cell and that cell.
bool is_within_reach(const EnvironmentSettings& settings, int place);

}  // namespace dtool::trainer
