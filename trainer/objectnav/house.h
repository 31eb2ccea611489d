// SPDX-License-Identifier: MIT
// Houses for ObjectNav, generated from a number: rooms, doors, furniture and objects on a grid.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "trainer/objectnav/objectnav_settings.h"

namespace dtool::trainer {

// An ObjectNav agent's actions, and what it sees: the bytes of an observation. The environment
// writes them, the network's encoder reads them, pictures show them.

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

class Random;

/// A cell of the grid. The house has a margin as wide as the view is deep, so that looking and
/// moving need no bounds check.
using Cell = std::int16_t;
inline constexpr int kStride = kMostSide + 2 * kViewDepth;
inline constexpr int kGridCells = kStride * kStride;

/// The cell `x` cells east and `y` cells south of the house's north-western corner.
constexpr Cell cell_at(int x, int y) {
  return static_cast<Cell>((y + kViewDepth) * kStride + x + kViewDepth);
}
constexpr int x_of(Cell cell) {
  return cell % kStride - kViewDepth;
}
constexpr int y_of(Cell cell) {
  return cell / kStride - kViewDepth;
}

/// 0 north, 1 east, 2 south, 3 west.
using Heading = int;
inline constexpr std::array<Cell, 4> kAhead = {-kStride, 1, kStride, -1};
constexpr Heading turned(Heading heading, int right_angles) {
  return (heading + right_angles) & 3;
}

enum class RoomKind : std::uint8_t { living_room, kitchen, bedroom, bathroom };
inline constexpr int kRoomKinds = 4;
inline constexpr std::array<std::string_view, kRoomKinds> kRoomNames = {"living room", "kitchen",
                                                                        "bedroom", "bathroom"};

/// A room's floor, without the surrounding walls.
struct Room {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  RoomKind kind = RoomKind::living_room;
};

struct Object {
  Cell cell = 0;
  std::uint8_t kind = 0;  ///< its class, 0..11
};

/// A cell's byte: the code of what is seen there, and these bits.
inline constexpr std::uint8_t kSeenMask = 0x1f;
inline constexpr std::uint8_t kSolid = 0x40;   ///< cannot be entered
inline constexpr std::uint8_t kOpaque = 0x80;  ///< hides cells behind it

/// One house. All free cells (floor and doors) are connected. Every object can be found: there is a
/// free cell from which it is seen within the success distance. Allocates no memory, so that a new
/// house can be made in place.
struct House {
  int width = 0;
  int height = 0;
  std::array<std::uint8_t, kGridCells> cells{};

  std::span<const Room> rooms() const { return {room_list.data(), room_count}; }
  std::span<const Object> objects() const { return {object_list.data(), object_count}; }
  /// From west to east, then from north to south.
  std::span<const Cell> free_cells() const { return {free_list.data(), free_count}; }
  bool is_free(int cell) const { return (cells[static_cast<std::size_t>(cell)] & kSolid) == 0; }
  bool is_opaque(int cell) const { return (cells[static_cast<std::size_t>(cell)] & kOpaque) != 0; }
  std::uint8_t seen(int cell) const { return cells[static_cast<std::size_t>(cell)] & kSeenMask; }

  std::array<Room, kMostRooms> room_list;
  std::size_t room_count = 0;
  std::array<Object, kObjectClasses * kMostOfAClass> object_list;
  std::size_t object_count = 0;
  std::array<Cell, kMostSide * kMostSide> free_list;
  std::size_t free_count = 0;
};

/// The number of house `house` of a sampler, the same on every machine. Training and validation
/// houses are disjoint: the highest bit of their numbers differs.
std::uint64_t house_number(EpisodeSet set, std::uint64_t seed, std::int64_t sampler,
                           std::int64_t house);

/// Makes the house of this number, the same on every machine. Allocates nothing.
void make_house(const EnvironmentSettings& settings, std::uint64_t number, House& house);

/// The steps of `make_house`: outer walls, rooms and doors; then furniture and objects, which keep
/// the free cells connected.
void build_rooms(const EnvironmentSettings& settings, Random& random, House& house);
void furnish(const EnvironmentSettings& settings, Random& random, House& house);

}  // namespace dtool::trainer
