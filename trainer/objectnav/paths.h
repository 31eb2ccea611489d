// SPDX-License-Identifier: MIT
// Distances to a goal, and where it is reached. The reward's shaping, SPL and the policy `shortest`
// use these fields.
#pragma once

#include <array>
#include <cstdint>

#include "trainer/objectnav/house.h"

namespace dtool::trainer {

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
