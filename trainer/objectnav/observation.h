// SPDX-License-Identifier: MIT
// An ObjectNav agent's actions, and what it sees: the bytes of an observation. The environment
// writes them, the network's encoder reads them, pictures show them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace dtool::trainer {

/// An action of the agent. `Action` is the word on the command line. Looking turns the head by 90
/// degrees relative to the body, to -90, 0 or +90: the two-dimensional counterpart of AI2-THOR's
/// LookUp and LookDown. At the limit the head stays.
enum class Move : std::uint8_t {
  move_ahead,
  rotate_left,
  rotate_right,
  look_left,
  look_right,
  done,
};
inline constexpr int kActions = 6;

inline constexpr std::array<std::string_view, kActions> kActionNames = {
    "move_ahead", "rotate_left", "rotate_right", "look_left", "look_right", "done"};

/// The previous action in an observation: an action, or one of these.
inline constexpr std::uint8_t kEpisodeBegins = 6;
inline constexpr std::uint8_t kMoveWasBlocked = 7;  ///< a move_ahead that met an obstacle
inline constexpr int kPreviousActions = 8;

inline constexpr int kHeads = 3;  ///< 0: 90 degrees to the left, 1: straight on, 2: to the right
inline constexpr std::uint8_t kHeadStraight = 1;

/// The classes of objects: those of the RoboTHOR ObjectNav challenge
/// (https://github.com/allenai/robothor-challenge).
inline constexpr int kObjectClasses = 12;
inline constexpr std::array<std::string_view, kObjectClasses> kObjectNames = {
    "alarm clock", "apple",  "baseball bat", "basketball",   "bowl",       "garbage can",
    "house plant", "laptop", "mug",          "spray bottle", "television", "vase"};

/// What is seen in a cell.
inline constexpr std::uint8_t kHidden = 0;
/// The first of the codes up to kFloor + 3: one code for each kind of room.
inline constexpr std::uint8_t kFloor = 1;
inline constexpr std::uint8_t kWall = 5;
inline constexpr std::uint8_t kDoor = 6;
inline constexpr std::uint8_t kLowFurniture = 7;   ///< blocks moving, not sight
inline constexpr std::uint8_t kTallFurniture = 8;  ///< blocks both
/// The first of the codes up to kObject + 11: one code for each class.
inline constexpr std::uint8_t kObject = 9;
inline constexpr std::uint8_t kGoalObject = 21;  ///< an object of the wanted class
inline constexpr int kSeenKinds = 22;

/// A cell of the view: its distance ahead of the agent in the direction of the look, and its
/// distance to the right (negative: to the left).
struct ViewPlace {
  int forward;
  int right;
};

/// The view is a cone: as wide as it is far, up to four cells on either side, eight cells deep. The
/// agent's own cell is not in it.
inline constexpr int kViewDepth = 8;
constexpr int view_half_width(int forward) {
  return std::min(4, std::max(1, forward));
}
inline constexpr int kViewCells = 62;

/// The cells of the view in the order of an observation: nearest row first, from left to right.
inline constexpr std::array<ViewPlace, kViewCells> kViewPlaces = [] {
  std::array<ViewPlace, kViewCells> places{};
  std::size_t count = 0;
  for (int forward = 0; forward <= kViewDepth; ++forward) {
    const int half = view_half_width(forward);
    for (int right = -half; right <= half; ++right) {
      if (forward != 0 || right != 0) places.at(count++) = {forward, right};
    }
  }
  return places;
}();
static_assert(kViewPlaces.back().forward == kViewDepth && kViewPlaces.back().right == 4);

/// An observation: `kViewCells` codes of seen cells, then these bytes.
inline constexpr int kGoalByte = kViewCells;                ///< class to find, 0..11
inline constexpr int kPreviousActionByte = kViewCells + 1;  ///< 0..7
inline constexpr int kHeadByte = kViewCells + 2;            ///< 0..2
inline constexpr int kObservationBytes = kViewCells + 3;

}  // namespace dtool::trainer
