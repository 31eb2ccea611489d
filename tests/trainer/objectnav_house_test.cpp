// SPDX-License-Identifier: MIT
// Thousands of houses, of several settings, each checked as a whole.
#include "trainer/objectnav/house.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "trainer/objectnav/view.h"

using namespace dtool::trainer;

namespace {

constexpr std::uint64_t kHouses = 3000;

std::vector<EnvironmentSettings> several_settings() {
  EnvironmentSettings crowded;
  crowded.low_furniture = kMostFurniture;
  crowded.tall_furniture = kMostFurniture;
  crowded.objects = kObjectClasses;
  EnvironmentSettings smallest;
  smallest.least_side = smallest.most_side = kLeastSide;
  EnvironmentSettings largest;
  largest.least_side = largest.most_side = kMostSide;
  largest.least_rooms = largest.most_rooms = kMostRooms;
  return {{}, crowded, smallest, largest};
}

/// Calls `check(settings, house)` for houses of each settings.
template <class Check>
void for_many_houses(const Check& check) {
  House house;
  for (const EnvironmentSettings& settings : several_settings()) {
    // The largest take the longest.
    const std::uint64_t houses = settings.most_side == kMostSide ? kHouses / 16 : kHouses;
    for (std::uint64_t number = 0; number < houses; ++number) {
      SCOPED_TRACE("house " + std::to_string(number));
      make_house(settings, number, house);
      check(settings, house);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

std::set<int> flooded_from(const House& house, int cell) {
  std::set<int> reached = {cell};
  std::vector<int> open = {cell};
  while (!open.empty()) {
    const int here = open.back();
    open.pop_back();
    for (const int next : {here - 1, here + 1, here - kStride, here + kStride}) {
      if (house.is_free(next) && reached.insert(next).second) open.push_back(next);
    }
  }
  return reached;
}

const Room* room_at(const House& house, Cell cell) {
  for (const Room& room : house.rooms()) {
    const int x = x_of(cell) - room.x;
    const int y = y_of(cell) - room.y;
    if (x >= 0 && x < room.width && y >= 0 && y < room.height) return &room;
  }
  return nullptr;
}

}  // namespace

TEST(ObjectNavHouse, ItsFreeCellsAreConnected) {
  for_many_houses([](const EnvironmentSettings&, const House& house) {
    std::set<int> free;
    for (int cell = 0; cell < kGridCells; ++cell) {
      if (house.is_free(cell)) free.insert(cell);
    }
    ASSERT_EQ(free, std::set<int>(house.free_cells().begin(), house.free_cells().end()));
    ASSERT_EQ(flooded_from(house, *free.begin()), free);
  });
}

TEST(ObjectNavHouse, ItIsAsLargeAndHasAsManyRoomsAsItsSettingsSay) {
  std::set<std::size_t> counts;
  for_many_houses([&](const EnvironmentSettings& settings, const House& house) {
    for (const int side : {house.width, house.height}) {
      ASSERT_GE(side, settings.least_side);
      ASSERT_LE(side, settings.most_side);
    }
    ASSERT_LE(house.rooms().size(), static_cast<std::size_t>(settings.most_rooms));
    ASSERT_GE(house.rooms().size(), static_cast<std::size_t>(settings.least_rooms));
    counts.insert(house.rooms().size());
    for (const Room& room : house.rooms()) {
      ASSERT_GE(room.width, 3);
      ASSERT_GE(room.height, 3);
    }
  });
  EXPECT_EQ(counts, (std::set<std::size_t>{2, 3, 4, 5, 16}));
}

TEST(ObjectNavHouse, WallsSurroundItAndDoorsLeadFromRoomToRoom) {
  for_many_houses([](const EnvironmentSettings&, const House& house) {
    std::size_t doors = 0;
    for (int y = 0; y < house.height; ++y) {
      for (int x = 0; x < house.width; ++x) {
        const Cell cell = cell_at(x, y);
        const bool is_border = x == 0 || y == 0 || x == house.width - 1 || y == house.height - 1;
        ASSERT_TRUE(!is_border || house.seen(cell) == kWall);
        if (house.seen(cell) != kDoor) continue;
        ++doors;
        const bool joins_columns = house.is_free(cell - 1) && house.is_free(cell + 1);
        const bool joins_rows = house.is_free(cell - kStride) && house.is_free(cell + kStride);
        ASSERT_NE(joins_columns, joins_rows);
      }
    }
    ASSERT_EQ(doors, house.rooms().size() - 1);
  });
}

TEST(ObjectNavHouse, EveryObjectHasACellOfItsOwnAndCanBeFound) {
  GoalField field;
  std::size_t objects = 0;
  for_many_houses([&](const EnvironmentSettings& settings, const House& house) {
    std::set<int> kinds;
    ASSERT_FALSE(house.objects().empty());
    ASSERT_LE(house.objects().size(), static_cast<std::size_t>(settings.objects));
    objects += house.objects().size();
    for (const Object& object : house.objects()) {
      ASSERT_EQ(house.seen(object.cell), kObject + object.kind);
      ASSERT_FALSE(house.is_free(object.cell));
      ASSERT_FALSE(house.is_opaque(object.cell));
      ASSERT_TRUE(kinds.insert(object.kind).second) << "a class comes twice";
      ASSERT_NE(room_at(house, object.cell), nullptr);
      find_paths(settings, house, object.kind, field);
      for (const Cell cell : house.free_cells()) {
        ASSERT_NE(field.distance[static_cast<std::size_t>(cell)], kUnreachable);
      }
    }
  });
  EXPECT_GT(objects, 3 * kHouses * 7) << "few are left out for lack of a place";
}

TEST(ObjectNavHouse, MayHaveSeveralObjectsOfAClass) {
  EnvironmentSettings settings;
  settings.objects = 5;
  settings.of_a_class = 3;
  std::size_t objects = 0;
  House house;
  for (std::uint64_t number = 0; number < 200; ++number) {
    make_house(settings, number, house);
    std::map<int, int> count;
    for (const Object& object : house.objects()) {
      EXPECT_LE(++count[object.kind], 3);
      EXPECT_EQ(house.seen(object.cell), kObject + object.kind);
      EXPECT_TRUE(can_be_found(settings, house, object.cell));
    }
    EXPECT_LE(count.size(), 5U);
    objects += house.objects().size();
  }
  EXPECT_GT(objects, 200U * 12) << "few are left out for lack of a place";
}

TEST(ObjectNavHouse, ClassesAreLikelierInSomeKindsOfRoom) {
  std::map<std::pair<int, RoomKind>, int> count;
  House house;
  for (std::uint64_t number = 0; number < kHouses; ++number) {
    make_house({}, number, house);
    if (house.rooms().size() < 4) continue;  // not every kind of room is there
    for (const Object& object : house.objects()) {
      ++count[{object.kind, room_at(house, object.cell)->kind}];
    }
  }
  const int apple = 1, alarm_clock = 0, television = 10;
  EXPECT_GT(count[std::pair(apple, RoomKind::kitchen)],
            2 * count[std::pair(apple, RoomKind::living_room)]);
  EXPECT_GT(count[std::pair(alarm_clock, RoomKind::bedroom)],
            4 * count[std::pair(alarm_clock, RoomKind::living_room)]);
  EXPECT_GT(count[std::pair(television, RoomKind::living_room)],
            4 * count[std::pair(television, RoomKind::bathroom)]);
  EXPECT_GT(count[std::pair(television, RoomKind::bathroom)], 0) << "likely, and no more";
}

TEST(ObjectNavHouse, ANumberIsAHouse) {
  House one, other;
  make_house({}, 4, other);  // what was there before does not matter
  make_house({}, 3, one);
  make_house({}, 3, other);
  EXPECT_EQ(one.cells, other.cells);
  make_house({}, 5, other);
  EXPECT_NE(one.cells, other.cells);
}

TEST(ObjectNavHouse, TrainingAndValidationHousesAreDisjointAndNoTwoSamplersShareOne) {
  std::set<std::uint64_t> numbers;
  for (const EpisodeSet set : {EpisodeSet::training, EpisodeSet::validation}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      for (std::int64_t sampler = 0; sampler < 50; ++sampler) {
        for (std::int64_t house = 0; house < 50; ++house) {
          const std::uint64_t number = house_number(set, seed, sampler, house);
          EXPECT_EQ(number >> 63, set == EpisodeSet::validation ? 1u : 0u);
          EXPECT_TRUE(numbers.insert(number).second);
        }
      }
    }
  }
}
