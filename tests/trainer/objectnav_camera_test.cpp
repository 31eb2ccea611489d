// SPDX-License-Identifier: MIT
// The camera's pictures: depths, what hides what, every class by its looks, and the same bytes on
// every machine.
#include "trainer/objectnav/camera.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/drawn_house.h"
#include "trainer/data/sampler.h"
#include "trainer/objectnav/view.h"

using namespace dtool::trainer;

namespace {

using Picture = std::vector<std::uint8_t>;
constexpr int kPlane = kPictureSide * kPictureSide;
constexpr int kMiddle = kPictureSide / 2;

Picture picture(const House& house, Cell cell, Heading heading, int marked = kNoClass) {
  Picture bytes(kPictureBytes);
  take_picture(house, cell, heading, marked, bytes.data());
  return bytes;
}

int depth_at(const Picture& of, int row, int column) {
  return of[static_cast<std::size_t>(3 * kPlane + row * kPictureSide + column)];
}

int colour_at(const Picture& of, int row, int column) {
  const auto at = static_cast<std::size_t>(row * kPictureSide + column);
  return of[at] << 16 | of[at + kPlane] << 8 | of[at + 2 * kPlane];
}

/// A room with `ahead` in its middle row, from the third cell on.
House corridor(const std::string& ahead) {
  return drawn_house({"############", "#..........#",
                      "#.." + ahead + std::string(8 - ahead.size(), '.') + "#", "#..........#",
                      "############"});
}
Picture seen_ahead(const std::string& ahead) {
  return picture(corridor(ahead), cell_at(1, 2), 1);
}

/// FNV-1a of the bytes, begun with the hash of earlier ones.
std::uint64_t hash_of(const Picture& bytes, std::uint64_t hash) {
  for (const std::uint8_t each : bytes) hash = (hash ^ each) * 0x100000001b3;
  return hash;
}

/// The house without the object in this cell: a floor like that of its room.
House without(House house, Cell cell) {
  for (const Room& room : house.rooms()) {
    const int x = x_of(cell) - room.x, y = y_of(cell) - room.y;
    if (x < 0 || y < 0 || x >= room.width || y >= room.height) continue;
    house.cells[static_cast<std::size_t>(cell)] =
        static_cast<std::uint8_t>(kFloor + static_cast<int>(room.kind));
  }
  return house;
}

House rooms_house(std::uint64_t number) {
  EnvironmentSettings settings;
  settings.least_rooms = 5;
  settings.tall_furniture = 0.1;
  settings.low_furniture = 0.1;
  House house;
  make_house(settings, number, house);
  return house;
}

}  // namespace

TEST(ObjectNavCamera, DepthIsTheDistanceAlongTheLook) {
  const House house = corridor("");
  for (int x = 1; x <= 10; ++x) {
    const Picture seen = picture(house, cell_at(x, 2), 1);
    // The wall's side is half a cell nearer than its middle; a cell has 16 steps.
    EXPECT_EQ(depth_at(seen, kMiddle, kMiddle), 16 * (11 - x) - 8);
    EXPECT_EQ(depth_at(seen, kMiddle - 1, kMiddle - 1), 16 * (11 - x) - 8);
  }
  const Picture seen = picture(house, cell_at(1, 2), 1);
  for (int row = kMiddle + 1; row < kPictureSide; ++row) {
    EXPECT_LE(depth_at(seen, row, kMiddle), depth_at(seen, row - 1, kMiddle))
        << "the floor comes nearer";
  }
}

TEST(ObjectNavCamera, LowFurnitureIsSeenOverAndTallFurnitureHides) {
  EXPECT_NE(seen_ahead("o..B"), seen_ahead("o..."));
  EXPECT_EQ(seen_ahead("T..B"), seen_ahead("T..."));
  EXPECT_NE(seen_ahead("T..."), seen_ahead("...."));
  EXPECT_NE(seen_ahead("A..T"), seen_ahead("A...")) << "an object hides nothing above it";
  EXPECT_EQ(picture(drawn_house({"#######", "#..#.B#", "#..#..#", "#######"}), cell_at(1, 1), 1),
            picture(drawn_house({"#######", "#..#..#", "#..#..#", "#######"}), cell_at(1, 1), 1));
}

TEST(ObjectNavCamera, EveryClassLooksUnlikeTheOthersAndUnlikeFurniture) {
  std::set<Picture> looks = {seen_ahead("..."), seen_ahead("..o"), seen_ahead("..T")};
  for (char object = 'A'; object < 'A' + kObjectClasses; ++object) {
    looks.insert(seen_ahead(std::string("..") + object));
  }
  EXPECT_EQ(looks.size(), 3U + kObjectClasses);
}

TEST(ObjectNavCamera, MarksTheClassThatItIsTold) {
  const House house = corridor("..B.C");
  const Cell cell = cell_at(1, 2);
  EXPECT_EQ(picture(house, cell, 1, 0), picture(house, cell, 1));
  const auto marked = [&](int kind) {
    const Picture seen = picture(house, cell, 1, kind);
    int pixels = 0;
    for (std::size_t i = 0; i < kPlane; ++i) {
      pixels += seen[i] > 100 && seen[i + kPlane] == 0 && seen[i + 2 * kPlane] == seen[i] ? 1 : 0;
    }
    return pixels;
  };
  EXPECT_EQ(marked(kNoClass), 0);
  EXPECT_GT(marked(1), marked(2));
  EXPECT_GT(marked(2), 0);
}

TEST(ObjectNavCamera, ADoorHasAFrameAndIsSeenThrough) {
  const auto seen = [](const char* middle) {
    return picture(drawn_house({"#########", "#...#...#", middle, "#...#...#", "#########"}),
                   cell_at(1, 2), 1);
  };
  const Picture wall = seen("#...#...#");
  const Picture door = seen("#...+...#");
  EXPECT_EQ(depth_at(wall, kMiddle, kMiddle), 16 * 3 - 8);
  EXPECT_EQ(depth_at(door, kMiddle, kMiddle), 16 * 7 - 8);
  EXPECT_EQ(depth_at(door, 5, kMiddle), 16 * 3 - 8) << "above the door is wall";
  int post = 0;
  while (depth_at(door, kMiddle, kMiddle + post) != 16 * 3 - 8) ++post;
  EXPECT_EQ(colour_at(door, 5, kMiddle), colour_at(door, kMiddle, kMiddle + post));
  EXPECT_NE(colour_at(wall, kMiddle, kMiddle + post), colour_at(door, kMiddle, kMiddle + post));
}

TEST(ObjectNavCamera, AllFourDirectionsAreAlike) {
  std::vector<std::string> rows = {"#######", "#..C..#", "#o....#", "#..+..#",
                                   "#T..K.#", "#.....#", "#######"};
  const Picture seen = picture(drawn_house(rows), cell_at(2, 4), 0);
  int x = 2, y = 4;
  for (Heading heading = 1; heading < 4; ++heading) {
    std::vector<std::string> turned_rows(rows.size(), std::string(rows.size(), ' '));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t k = 0; k < rows.size(); ++k)
        turned_rows[k][rows.size() - 1 - i] = rows[i][k];
    }
    rows = turned_rows;
    const int old_x = x;
    x = static_cast<int>(rows.size()) - 1 - y;
    y = old_x;
    EXPECT_EQ(picture(drawn_house(rows), cell_at(x, y), heading), seen) << "heading " << heading;
  }
}

// Except for the cells directly at the agent's sides, which are outside of the picture.
TEST(ObjectNavCamera, ShowsEveryObjectThatSuccessNeeds) {
  const EnvironmentSettings settings;
  int views = 0;
  for (std::uint64_t number = 0; number < 60; ++number) {
    const House house = rooms_house(number);
    for (const Object& object : house.objects()) {
      const House other = without(house, object.cell);
      for (int place = 0; place < kViewCells; ++place) {
        if (!is_within_reach(settings, place) ||
            kViewPlaces[static_cast<std::size_t>(place)].forward == 0) {
          continue;
        }
        for (Heading heading = 0; heading < 4; ++heading) {
          const auto cell =
              static_cast<Cell>(2 * object.cell - cell_in_view(object.cell, heading, place));
          if (!house.is_free(cell) || !sees(house, cell, heading, place)) continue;
          ++views;
          EXPECT_NE(picture(house, cell, heading), picture(other, cell, heading))
              << kObjectNames[object.kind] << " at place " << place << " of house " << number;
        }
      }
    }
  }
  EXPECT_GT(views, 2000);
}

TEST(ObjectNavCamera, TakesTheSameBytesOnEveryMachine) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::uint64_t number = 0; number < 100; ++number) {
    const House house = rooms_house(number);
    const auto cells = house.free_cells();
    for (std::size_t i = 0; i < cells.size(); i += 7) {
      hash = hash_of(picture(house, cells[i], static_cast<Heading>(i % 4)), hash);
    }
  }
  EXPECT_EQ(hash, 7885531596527689684U);
}
