// How far it is to a goal, and where it is reached. The reward's shaping, SPL and the policy
// `shortest` follow these fields.
#pragma once

#include <array>
#include <cstdint>

#include "trainer/objectnav/house.h"

namespace dtool::trainer {

inline constexpr std::uint16_t kUnreachable = 0xffff;

/// For one class of objects in one house, by cell.
struct GoalField {
  /// Steps of move_ahead to the nearest cell from which success is possible; 0 there; kUnreachable
  /// in cells that are not free.
  std::array<std::uint16_t, kGridCells> distance;
  /// Bit h: looking in direction h shows an object of the class within the success distance.
  std::array<std::uint8_t, kGridCells> success_headings;
};

/// Fills `field` for the objects of class `goal`, by breadth-first search. Allocates nothing.
void find_paths(const EnvironmentSettings& settings, const House& house, int goal,
                GoalField& field);

/// Whether there is a free cell from which an object in `cell` is seen within the success distance.
bool can_be_found(const EnvironmentSettings& settings, const House& house, Cell cell);

/// Whether place `place` of the view (an index of kViewPlaces) is within the success distance,
/// which is from the agent's centre to the cell's.
bool is_within_reach(const EnvironmentSettings& settings, int place);

}  // namespace dtool::trainer
