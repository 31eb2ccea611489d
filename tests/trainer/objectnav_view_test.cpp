// SPDX-License-Identifier: MIT
// What is seen: against drawings by hand, and against a slow computation by another way.
#include "trainer/objectnav/view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/trainer/drawn_house.h"

using namespace dtool::trainer;

namespace {

using Codes = std::array<std::uint8_t, kViewCells>;

Codes codes_of(const House& house, int x, int y, Heading heading, int goal = 0) {
  Codes codes;
  look(house, cell_at(x, y), heading, goal, codes.data());
  return codes;
}

/// The view as its rows, the farthest first, `^` the agent: a space is hidden, `$` the goal.
std::vector<std::string> drawn(const Codes& codes) {
  std::vector<std::string> rows(kViewDepth + 1, std::string(9, ' '));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto [forward, right] = kViewPlaces[i];
    char& cell = rows.at(static_cast<std::size_t>(kViewDepth - forward))
                     .at(static_cast<std::size_t>(right + 4));
    cell = " ....#+oTABCDEFGHIJKL$"[codes[i]];
  }
  rows.back()[4] = '^';
  return rows;
}

/// By geometry: walks the two Bresenham lines with floating point, halves rounded down and up.
bool is_seen_by_geometry(const House& house, int x, int y, Heading heading, ViewPlace place) {
  constexpr std::array<std::array<int, 2>, 4> kSteps = {{{0, -1}, {1, 0}, {0, 1}, {-1, 0}}};
  const auto [ahead_x, ahead_y] = kSteps.at(static_cast<std::size_t>(heading));
  const auto [right_x, right_y] = kSteps.at(static_cast<std::size_t>((heading + 1) % 4));
  for (const bool rounds_up : {false, true}) {
    bool is_clear = true;
    for (int row = 1; row < place.forward; ++row) {
      const double exact = double(place.right) * row / place.forward;
      const int side =
          static_cast<int>(rounds_up ? std::floor(exact + 0.5) : std::ceil(exact - 0.5));
      const int cell_x = x + row * ahead_x + side * right_x;
      const int cell_y = y + row * ahead_y + side * right_y;
      is_clear = is_clear && !house.is_opaque(cell_at(cell_x, cell_y));
    }
    if (is_clear) return true;
  }
  return false;
}

}  // namespace

TEST(ObjectNavView, IsTheOneDrawnByHand) {
  const House house = drawn_house({
      "###############",
      "#......#......#",
      "#......+......#",
      "#......#......#",
      "#..A...####+###",
      "#......#......#",
      "#.o.T..#..B...#",
      "#......+......#",
      "#......#......#",
      "###############",
  });
  // From the south of the room on the left, northwards. The cupboard hides a wedge of the room, the
  // table and the object hide nothing, and walls close the view.
  const std::vector<std::string> expected = {
      "  #####  ", "  ....   ", " #....   ", " #....  #", " #..$. .#",
      " #...  . ", "  .o.T.  ", "   ...   ", "   .^.   ",
  };
  EXPECT_EQ(drawn(codes_of(house, 3, 8, 0)), expected);
}

TEST(ObjectNavView, TurnsWithTheAgent) {
  // The same surroundings in each of the four directions.
  const std::vector<std::string> rows = {
      "###########", "#....A....#", "#.........#", "#....o....#", "#.........#", "#B.o...T.D#",
      "#.........#", "#....T....#", "#.........#", "#....C....#", "###########",
  };
  const House house = drawn_house(rows);
  const auto ahead = [&](Heading heading) {
    std::string cells;
    for (const std::string& row : drawn(codes_of(house, 5, 5, heading, 11))) cells += row.at(4);
    std::reverse(cells.begin(), cells.end());
    return cells;
  };
  EXPECT_EQ(ahead(0), "^.o.A#   ");
  EXPECT_EQ(ahead(1), "^.T      ");
  EXPECT_EQ(ahead(2), "^.T      ");
  EXPECT_EQ(ahead(3), "^.o.B#   ");
}

TEST(ObjectNavView, WallsAndTallFurnitureHideWhatIsBehindAndNothingElseDoes) {
  for (const char between : {'.', '+', 'o', 'B', 'T', '#'}) {
    const House house = drawn_house({
        "#######",
        "#..A..#",
        std::string("#..") + between + "..#",
        "#.....#",
        "#######",
    });
    const Codes codes = codes_of(house, 3, 3, 0);
    const auto place = static_cast<std::size_t>(
        std::find_if(kViewPlaces.begin(), kViewPlaces.end(),
                     [](ViewPlace each) { return each.forward == 2 && each.right == 0; }) -
        kViewPlaces.begin());
    const bool hides = between == 'T' || between == '#';
    EXPECT_EQ(codes.at(place), hides ? kHidden : kGoalObject) << between;
  }
}

TEST(ObjectNavView, OnlyObjectsOfTheGoalsClassAreTheGoal) {
  const House house = drawn_house({"#####", "#A.B#", "#...#", "#...#", "#####"});
  const auto row = [&](int goal) {
    return drawn(codes_of(house, 2, 3, 0, goal)).at(6).substr(2, 5);
  };
  EXPECT_EQ(row(0), "#$.B#");
  EXPECT_EQ(row(1), "#A.$#");
  EXPECT_EQ(row(2), "#A.B#");
}

TEST(ObjectNavView, IsWhatASlowComputationFinds) {
  House house;
  EnvironmentSettings settings;
  settings.tall_furniture = 0.1;
  int hidden = 0;
  for (std::uint64_t number = 0; number < 60; ++number) {
    make_house(settings, number, house);
    for (const Cell cell : house.free_cells()) {
      const int x = x_of(cell), y = y_of(cell);
      for (Heading heading = 0; heading < 4; ++heading) {
        const int goal = house.objects()[0].kind;
        const Codes codes = codes_of(house, x, y, heading, goal);
        for (int place = 0; place < kViewCells; ++place) {
          const ViewPlace at = kViewPlaces.at(static_cast<std::size_t>(place));
          const bool is_seen = is_seen_by_geometry(house, x, y, heading, at);
          ASSERT_EQ(sees(house, cell, heading, place), is_seen);
          int expected = is_seen ? house.seen(cell_in_view(cell, heading, place)) : int{kHidden};
          if (expected == kObject + goal) expected = kGoalObject;
          ASSERT_EQ(codes.at(static_cast<std::size_t>(place)), expected)
              << "house " << number << ", " << x << " " << y << " heading " << heading;
          hidden += is_seen ? 0 : 1;
        }
      }
    }
  }
  EXPECT_GT(hidden, 100'000);
}

TEST(ObjectNavView, NothingOutsideTheHouseIsEverSeen) {
  House house;
  for (std::uint64_t number = 0; number < 200; ++number) {
    make_house({}, number, house);
    for (const Cell cell : house.free_cells()) {
      for (Heading heading = 0; heading < 4; ++heading) {
        for (int place = 0; place < kViewCells; ++place) {
          const Cell seen = cell_in_view(cell, heading, place);
          const bool is_inside = x_of(seen) >= 0 && x_of(seen) < house.width && y_of(seen) >= 0 &&
                                 y_of(seen) < house.height;
          ASSERT_TRUE(is_inside || !sees(house, cell, heading, place));
        }
      }
    }
  }
}
