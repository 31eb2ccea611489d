// SPDX-License-Identifier: MIT
// A house's floor plan: splits the largest room with a wall and a door until there are as many
// rooms as wanted. make_house calls it.
#include <algorithm>
#include <array>
#include <cassert>
#include <tuple>
#include <utility>

#include "trainer/data/sampler.h"
#include "trainer/objectnav/house.h"

namespace dtool::trainer {
namespace {

constexpr int kLeastRoomSide = 3;

enum class Along { x, y };

int between(Random& random, int least, int most) {
  return least + static_cast<int>(random.below(static_cast<std::uint64_t>(most - least) + 1));
}

std::uint8_t& at(House& house, int x, int y) {
  return house.cells[static_cast<std::size_t>(cell_at(x, y))];
}

/// A wall from the room's one side to the other, `offset` cells along `along`.
struct Wall {
  Along along;
  int offset;
};

/// Whether a wall would end at a door, which would block the door.
bool ends_at_a_door(House& house, const Room& room, Wall wall) {
  if (wall.along == Along::x) {
    const int x = room.x + wall.offset;
    return at(house, x, room.y - 1) == kDoor || at(house, x, room.y + room.height) == kDoor;
  }
  const int y = room.y + wall.offset;
  return at(house, room.x - 1, y) == kDoor || at(house, room.x + room.width, y) == kDoor;
}

/// Draws one of the walls that may split the room along `along`; returns whether there is one.
bool draw_wall(House& house, const Room& room, Random& random, Wall& wall) {
  const int side = wall.along == Along::x ? room.width : room.height;
  std::array<int, kMostSide> possible{};
  std::size_t count = 0;
  for (int offset = kLeastRoomSide; offset + kLeastRoomSide < side; ++offset) {
    if (!ends_at_a_door(house, room, {wall.along, offset})) possible[count++] = offset;
  }
  if (count == 0) return false;
  wall.offset = possible[random.below(count)];
  return true;
}

/// Splits the room; the other half becomes a new one. All is wall until floors are laid, so that
/// there is only the door to make.
void build_wall(House& house, Room& room, Wall wall, Random& random) {
  Room other = room;
  if (wall.along == Along::x) {
    const int x = room.x + wall.offset;
    at(house, x, room.y + between(random, 0, room.height - 1)) = kDoor;
    room.width = wall.offset;
    other.x = x + 1;
    other.width -= wall.offset + 1;
  } else {
    const int y = room.y + wall.offset;
    at(house, room.x + between(random, 0, room.width - 1), y) = kDoor;
    room.height = wall.offset;
    other.y = y + 1;
    other.height -= wall.offset + 1;
  }
  house.room_list[house.room_count++] = other;
}

/// Splits the room across its longer side if possible, else across the other.
bool split(House& house, Room& room, Random& random) {
  const bool is_wider = room.width != room.height ? room.width > room.height : random.below(2) == 0;
  Wall wall{is_wider ? Along::x : Along::y, 0};
  if (!draw_wall(house, room, random, wall)) {
    wall.along = is_wider ? Along::y : Along::x;
    if (!draw_wall(house, room, random, wall)) return false;
  }
  build_wall(house, room, wall, random);
  return true;
}

/// A total order, so that every standard library sorts alike.
bool is_larger(const Room& one, const Room& other) {
  const auto key = [](const Room& room) {
    return std::tuple(room.width * room.height, room.y, room.x);
  };
  return key(one) > key(other);
}

void sort_rooms(House& house) {
  const auto rooms = house.room_list.begin();
  std::sort(rooms, rooms + static_cast<std::ptrdiff_t>(house.room_count), is_larger);
}

/// The largest room is the living room; a fifth room is a second bedroom.
void choose_kinds(House& house, Random& random) {
  std::array<RoomKind, kMostRooms> kinds = {RoomKind::living_room, RoomKind::kitchen,
                                            RoomKind::bedroom, RoomKind::bathroom,
                                            RoomKind::bedroom};
  for (std::size_t i = 3; i > 1; --i) std::swap(kinds[i], kinds[1 + random.below(i)]);
  sort_rooms(house);
  for (std::size_t i = 0; i < house.room_count; ++i) house.room_list[i].kind = kinds[i];
}

void lay_floors(House& house) {
  for (const Room& room : house.rooms()) {
    const auto floor = static_cast<std::uint8_t>(kFloor + static_cast<int>(room.kind));
    for (int y = room.y; y < room.y + room.height; ++y) {
      for (int x = room.x; x < room.x + room.width; ++x) at(house, x, y) = floor;
    }
  }
}

}  // namespace

void build_rooms(const EnvironmentSettings& settings, Random& random, House& house) {
  assert(kLeastSide <= settings.least_side && settings.least_side <= settings.most_side &&
         settings.most_side <= kMostSide);
  assert(1 <= settings.least_rooms && settings.least_rooms <= settings.most_rooms &&
         settings.most_rooms <= kMostRooms);
  house.width = between(random, settings.least_side, settings.most_side);
  house.height = between(random, settings.least_side, settings.most_side);
  house.cells.fill(kHidden | kSolid | kOpaque);
  for (int y = 0; y < house.height; ++y) {
    std::fill_n(&at(house, 0, y), house.width, std::uint8_t{kWall | kSolid | kOpaque});
  }
  house.room_list[0] = {1, 1, house.width - 2, house.height - 2, RoomKind::living_room};
  house.room_count = 1;
  const auto wanted =
      static_cast<std::size_t>(between(random, settings.least_rooms, settings.most_rooms));
  while (house.room_count < wanted) {
    // The largest first; a smaller one only if no larger one can be split.
    sort_rooms(house);
    std::size_t tried = 0;
    const std::size_t count = house.room_count;
    while (tried < count && !split(house, house.room_list[tried], random)) ++tried;
    if (tried == count) break;
  }
  choose_kinds(house, random);
  lay_floors(house);
}

}  // namespace dtool::trainer
