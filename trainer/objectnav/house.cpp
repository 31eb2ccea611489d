// SPDX-License-Identifier: MIT
#include "trainer/objectnav/house.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <tuple>
#include <utility>

#include "trainer/data/sampler.h"
#include "trainer/objectnav/view.h"

namespace dtool::trainer {

namespace {

void list_free_cells(House& house) {
  house.free_count = 0;
  for (int y = 0; y < house.height; ++y) {
    for (int x = 0; x < house.width; ++x) {
      if (house.is_free(cell_at(x, y))) house.free_list[house.free_count++] = cell_at(x, y);
    }
  }
}

}  // namespace

std::uint64_t house_number(EpisodeSet set, std::uint64_t seed, std::int64_t sampler,
                           std::int64_t house) {
  std::uint64_t number = Random(seed).next();
  number = Random(number ^ static_cast<std::uint64_t>(sampler)).next();
  number = Random(number ^ static_cast<std::uint64_t>(house)).next();
  return number >> 1 | (set == EpisodeSet::validation ? std::uint64_t{1} << 63 : 0);
}

void make_house(const EnvironmentSettings& settings, std::uint64_t number, House& house) {
  Random random(number);
  do {  // once, unless furniture left no object within reach
    build_rooms(settings, random, house);
    furnish(settings, random, house);
  } while (house.object_count == 0);
  list_free_cells(house);
}

// A house's floor plan: splits the largest room with a wall and a door until there are as many
// rooms as wanted. make_house calls it.

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

/// The largest room is the living room; a fifth room is a second bedroom, and so on.
void choose_kinds(House& house, Random& random) {
  std::array<RoomKind, 5> kinds = {RoomKind::living_room, RoomKind::kitchen, RoomKind::bedroom,
                                   RoomKind::bathroom, RoomKind::bedroom};
  for (std::size_t i = 3; i > 1; --i) std::swap(kinds[i], kinds[1 + random.below(i)]);
  sort_rooms(house);
  for (std::size_t i = 0; i < house.room_count; ++i) {
    house.room_list[i].kind = kinds[i % kinds.size()];
  }
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

// Adds furniture and objects to a house that has its rooms. make_house calls it.

namespace {

/// The cells round a cell, clockwise from the north.
constexpr std::array<int, 8> kRound = {-kStride, -kStride + 1, 1,  kStride + 1,
                                       kStride,  kStride - 1,  -1, -kStride - 1};

/// How likely an object is to be in each kind of room: living room, kitchen, bedroom, bathroom.
constexpr std::array<std::array<int, kRoomKinds>, kObjectClasses> kLikely = {{
    {1, 1, 12, 1},  // alarm clock
    {2, 12, 1, 1},  // apple
    {3, 1, 8, 1},   // baseball bat
    {4, 1, 8, 1},   // basketball
    {3, 12, 1, 1},  // bowl
    {2, 8, 2, 6},   // garbage can
    {8, 2, 3, 2},   // house plant
    {6, 1, 8, 1},   // laptop
    {4, 9, 3, 1},   // mug
    {1, 5, 1, 12},  // spray bottle
    {12, 1, 4, 1},  // television
    {9, 3, 3, 1},   // vase
}};

std::uint8_t& at(House& house, int cell) {
  return house.cells[static_cast<std::size_t>(cell)];
}

bool is_floor(const House& house, int cell) {
  return house.is_free(cell) && house.seen(cell) != kDoor;
}

bool is_beside(const House& house, int cell, std::uint8_t what) {
  return std::any_of(kAhead.begin(), kAhead.end(),
                     [&](Cell ahead) { return house.seen(cell + ahead) == what; });
}

/// Whether a cell can be taken: no doorway, and the free cells stay connected. If those round it
/// are connected without it, every path through it has a way round. Some cells could be taken that
/// are refused here, because their way round is longer.
bool can_be_taken(const House& house, int cell) {
  if (!is_floor(house, cell) || is_beside(house, cell, kDoor)) return false;
  std::array<bool, 9> is_free{};
  for (std::size_t i = 0; i < 8; ++i) is_free[i] = house.is_free(cell + kRound[i]);
  is_free[8] = is_free[0];
  int parts = 0;
  for (std::size_t i = 0; i < 8; i += 2) {
    if (is_free[i] && !(is_free[i + 1] && is_free[i + 2])) ++parts;
  }
  return parts <= 1;
}

Cell random_cell(const Room& room, Random& random) {
  const int x = room.x + static_cast<int>(random.below(static_cast<std::uint64_t>(room.width)));
  const int y = room.y + static_cast<int>(random.below(static_cast<std::uint64_t>(room.height)));
  return cell_at(x, y);
}

int floor_cells(const House& house) {
  int count = 0;
  for (const Room& room : house.rooms()) count += room.width * room.height;
  return count;
}

enum class Where { anywhere, at_walls };

/// Pieces of one to three cells in a row, until a share of the floor is taken or there is no room.
void place_furniture(House& house, Random& random, double share, std::uint8_t what, Where where) {
  int wanted = static_cast<int>(share * floor_cells(house) + 0.5);
  for (int tries = 4 * wanted; wanted > 0 && tries > 0; --tries) {
    const Room& room = house.room_list[random.below(house.room_count)];
    int cell = random_cell(room, random);
    const std::uint64_t draw = random.below(12);
    const Cell along = kAhead[draw % 4];
    for (int length = 1 + static_cast<int>(draw / 4); length > 0 && wanted > 0; --length) {
      if (!can_be_taken(house, cell)) break;
      if (where == Where::at_walls && !is_beside(house, cell, kWall)) break;
      at(house, cell) = what;
      --wanted;
      cell += along;
    }
  }
}

const Room& likely_room(const House& house, int kind, Random& random) {
  const auto& likely = kLikely[static_cast<std::size_t>(kind)];
  const auto weight = [&](const Room& room) { return likely[static_cast<std::size_t>(room.kind)]; };
  int sum = 0;
  for (const Room& room : house.rooms()) sum += weight(room);
  int draw = static_cast<int>(random.below(static_cast<std::uint64_t>(sum)));
  std::size_t chosen = 0;
  while ((draw -= weight(house.room_list[chosen])) >= 0) ++chosen;
  return house.room_list[chosen];
}

void place_object(House& house, Random& random, std::uint8_t kind) {
  for (int tries = 16; tries > 0; --tries) {
    const Cell cell = random_cell(likely_room(house, kind, random), random);
    if (!can_be_taken(house, cell)) continue;
    at(house, cell) = static_cast<std::uint8_t>((kObject + kind) | kSolid);
    house.object_list[house.object_count++] = {cell, kind};
    return;
  }
}

void place_objects(const EnvironmentSettings& settings, House& house, Random& random) {
  std::array<std::uint8_t, kObjectClasses> kinds;
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = static_cast<std::uint8_t>(i);
  house.object_count = 0;
  const auto wanted = static_cast<std::size_t>(settings.objects);
  for (std::size_t i = 0; i < wanted; ++i) {
    std::swap(kinds[i], kinds[i + random.below(kinds.size() - i)]);
    place_object(house, random, kinds[i]);
  }
  for (int more = 1; more < settings.of_a_class; ++more) {
    for (std::size_t i = 0; i < wanted; ++i) place_object(house, random, kinds[i]);
  }
}

/// An object that cannot be reached, because later ones wall it in, becomes furniture; low, so that
/// it hides no other.
void replace_lost_objects(const EnvironmentSettings& settings, House& house) {
  std::size_t kept = 0;
  for (const Object object : house.objects()) {
    if (can_be_found(settings, house, object.cell)) {
      house.object_list[kept++] = object;
    } else {
      at(house, object.cell) = kLowFurniture | kSolid;
    }
  }
  house.object_count = kept;
}

}  // namespace

void furnish(const EnvironmentSettings& settings, Random& random, House& house) {
  place_furniture(house, random, settings.tall_furniture, kTallFurniture | kSolid | kOpaque,
                  Where::at_walls);
  place_furniture(house, random, settings.low_furniture, kLowFurniture | kSolid, Where::anywhere);
  place_objects(settings, house, random);
  replace_lost_objects(settings, house);
}

}  // namespace dtool::trainer
