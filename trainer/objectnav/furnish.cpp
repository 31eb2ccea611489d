// SPDX-License-Identifier: MIT
// Adds furniture and objects to a house that has its rooms. make_house calls it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "trainer/data/sampler.h"
#include "trainer/objectnav/house.h"
#include "trainer/objectnav/paths.h"

namespace dtool::trainer {
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

void place_objects(House& house, Random& random, int wanted) {
  std::array<std::uint8_t, kObjectClasses> kinds;
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = static_cast<std::uint8_t>(i);
  house.object_count = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(wanted); ++i) {
    std::swap(kinds[i], kinds[i + random.below(kinds.size() - i)]);
    for (int tries = 16; tries > 0; --tries) {
      const Cell cell = random_cell(likely_room(house, kinds[i], random), random);
      if (!can_be_taken(house, cell)) continue;
      at(house, cell) = static_cast<std::uint8_t>((kObject + kinds[i]) | kSolid);
      house.object_list[house.object_count++] = {cell, kinds[i]};
      break;
    }
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
  place_objects(house, random, settings.objects);
  replace_lost_objects(settings, house);
}

}  // namespace dtool::trainer
