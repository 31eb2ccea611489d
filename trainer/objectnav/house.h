// SPDX-License-Identifier: MIT
// Houses for ObjectNav, generated from a number: rooms, doors, furniture and objects on a grid.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/objectnav/observation.h"

namespace dtool::trainer {

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
  std::array<Object, kObjectClasses> object_list;
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
