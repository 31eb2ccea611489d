// SPDX-License-Identifier: MIT
// The rules of an episode: success, rewards, distances, and how well it went.
#include "trainer/objectnav/episode.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/trainer/drawn_house.h"
#include "trainer/data/sampler.h"
#include "trainer/objectnav/view.h"

using namespace dtool::trainer;

namespace {

/// A drawn house, an agent in it and the goal `A`.
struct Drawn {
  Drawn(const std::vector<std::string>& rows, int x, int y, Heading heading)
      : house(drawn_house(rows)) {
    find_paths(settings, house, 0, field);
    episode.cell = cell_at(x, y);
    episode.heading = heading;
    episode.shortest = distance(x, y);
  }

  int distance(int x, int y) const {
    return field.distance[static_cast<std::size_t>(cell_at(x, y))];
  }
  StepOutcome take(Move move) { return take_step(settings, house, field, move, episode); }
  StepOutcome take_all(const std::vector<Move>& moves) {
    StepOutcome last;
    for (const Move move : moves) last = take(move);
    return last;
  }

  EnvironmentSettings settings;
  House house;
  GoalField field;
  Episode episode;
};

const std::vector<std::string> kRoom = {"########", "#......#", "#..A...#", "#......#",
                                        "#......#", "#......#", "########"};

/// By relaxing all cells until nothing changes, from the cells where some view shows the goal
/// within reach.
std::vector<int> slow_distances(const EnvironmentSettings& settings, const House& house, int goal) {
  constexpr int kFar = 1'000'000;
  std::vector<int> distance(kGridCells, kFar);
  const double reach = settings.success_distance / kCellMetres;
  std::array<std::uint8_t, kViewCells> codes;
  for (const Cell cell : house.free_cells()) {
    for (Heading heading = 0; heading < 4; ++heading) {
      look(house, cell, heading, goal, codes.data());
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const double away = std::hypot(kViewPlaces[i].forward, kViewPlaces[i].right);
        if (codes[i] == kGoalObject && away <= reach) distance[static_cast<std::size_t>(cell)] = 0;
      }
    }
  }
  for (bool changes = true; changes;) {
    changes = false;
    for (const Cell cell : house.free_cells()) {
      for (const int next : {cell - 1, cell + 1, cell - kStride, cell + kStride}) {
        const int by_next = distance[static_cast<std::size_t>(next)] + 1;
        if (by_next >= distance[static_cast<std::size_t>(cell)]) continue;
        distance[static_cast<std::size_t>(cell)] = by_next;
        changes = true;
      }
    }
  }
  return distance;
}

}  // namespace

TEST(ObjectNavPaths, AreAsLongAsASlowComputationFinds) {
  House house;
  GoalField field;
  for (const double reach : {0.5, 1.0, 1.5}) {
    EnvironmentSettings settings;
    settings.success_distance = reach;
    for (std::uint64_t number = 0; number < 60; ++number) {
      make_house(settings, number, house);
      for (const Object& object : house.objects()) {
        find_paths(settings, house, object.kind, field);
        const auto slow = slow_distances(settings, house, object.kind);
        for (const Cell cell : house.free_cells()) {
          ASSERT_EQ(field.distance[static_cast<std::size_t>(cell)],
                    slow[static_cast<std::size_t>(cell)]);
        }
      }
    }
  }
}

TEST(ObjectNavPaths, SuccessIsPossibleWhereAndOnlyWhereTheGoalIsInViewAndWithinReach) {
  House house;
  GoalField field;
  const EnvironmentSettings settings;
  std::array<std::uint8_t, kViewCells> codes;
  for (std::uint64_t number = 0; number < 100; ++number) {
    make_house(settings, number, house);
    const int goal = house.objects()[0].kind;
    find_paths(settings, house, goal, field);
    for (const Cell cell : house.free_cells()) {
      for (Heading heading = 0; heading < 4; ++heading) {
        look(house, cell, heading, goal, codes.data());
        bool is_in_reach = false;
        for (int i = 0; i < kViewCells; ++i) {
          const bool is_goal = codes[static_cast<std::size_t>(i)] == kGoalObject;
          is_in_reach = is_in_reach || (is_goal && is_within_reach(settings, i));
        }
        const int headings = field.success_headings[static_cast<std::size_t>(cell)];
        ASSERT_EQ((headings >> heading & 1) != 0, is_in_reach);
      }
    }
  }
}

TEST(ObjectNavEpisode, DoneSucceedsOnlyWithTheGoalInViewAndWithinAMetre) {
  EXPECT_TRUE(Drawn(kRoom, 3, 3, 0).take(Move::done).is_success) << "beside it";
  EXPECT_TRUE(Drawn(kRoom, 3, 4, 0).take(Move::done).is_success) << "1.0 m away";
  EXPECT_TRUE(Drawn(kRoom, 4, 3, 0).take(Move::done).is_success) << "0.7 m away";
  EXPECT_FALSE(Drawn(kRoom, 3, 5, 0).take(Move::done).is_success) << "1.5 m away";
  EXPECT_FALSE(Drawn(kRoom, 4, 4, 0).take(Move::done).is_success) << "1.1 m away";
  EXPECT_FALSE(Drawn(kRoom, 3, 3, 2).take(Move::done).is_success) << "behind the agent";
  Drawn hidden({"#####", "#.A.#", "#.T.#", "#...#", "#####"}, 2, 3, 0);
  EXPECT_FALSE(hidden.take(Move::done).is_success) << "behind a cupboard";
  Drawn visible({"#####", "#.A.#", "#.o.#", "#...#", "#####"}, 2, 3, 0);
  EXPECT_TRUE(visible.take(Move::done).is_success) << "behind a low table";
}

TEST(ObjectNavEpisode, TheHeadCountsAndNotTheBody) {
  const Drawn drawn(kRoom, 5, 2, 0);  // the goal is a metre to the left
  EXPECT_FALSE(Drawn(drawn).take(Move::done).is_success);
  EXPECT_TRUE(Drawn(drawn).take_all({Move::look_left, Move::done}).is_success);
  EXPECT_TRUE(Drawn(drawn).take_all({Move::rotate_left, Move::done}).is_success);
  EXPECT_FALSE(Drawn(drawn).take_all({Move::look_left, Move::rotate_left, Move::done}).is_success);
  EXPECT_FALSE(Drawn(drawn).take_all({Move::look_left, Move::look_right, Move::done}).is_success);
}

TEST(ObjectNavEpisode, TheHeadTurnsNoFartherThanToTheSide) {
  Drawn drawn(kRoom, 5, 5, 0);
  drawn.take_all({Move::look_left, Move::look_left});
  EXPECT_EQ(drawn.episode.head, 0);
  EXPECT_EQ(view_heading(drawn.episode), 3);
  drawn.take_all({Move::look_right, Move::look_right, Move::look_right});
  EXPECT_EQ(drawn.episode.head, 2);
  EXPECT_EQ(view_heading(drawn.episode), 1);
  EXPECT_EQ(drawn.episode.heading, 0);
}

TEST(ObjectNavEpisode, ObservationsTellTheGoalThePreviousActionAndTheHead) {
  Drawn drawn(kRoom, 5, 5, 1);
  std::array<std::uint8_t, kObservationBytes> bytes;
  const auto previous = [&] {
    observe(drawn.house, drawn.episode, bytes.data());
    EXPECT_EQ(bytes[kGoalByte], 0);
    EXPECT_EQ(bytes[kHeadByte], drawn.episode.head);
    return bytes[kPreviousActionByte];
  };
  EXPECT_EQ(previous(), kEpisodeBegins);
  drawn.take(Move::move_ahead);
  EXPECT_EQ(previous(), static_cast<int>(Move::move_ahead));
  drawn.take(Move::move_ahead);
  EXPECT_EQ(previous(), kMoveWasBlocked) << "a wall";
  EXPECT_EQ(drawn.episode.cell, cell_at(6, 5));
  EXPECT_EQ(drawn.episode.moves, 1);
  drawn.take(Move::look_right);
  EXPECT_EQ(previous(), static_cast<int>(Move::look_right));
}

TEST(ObjectNavEpisode, FurnitureAndObjectsBlockAndDoorsDoNot) {
  const auto moves = [](char ahead) {
    Drawn drawn({"#####", "#.A.#", std::string("#.") + ahead + ".#", "#...#", "#####"}, 2, 3, 0);
    drawn.take(Move::move_ahead);
    return drawn.episode.moves;
  };
  EXPECT_EQ(moves('.'), 1);
  EXPECT_EQ(moves('+'), 1);
  for (const char each : {'#', 'o', 'T', 'B'}) EXPECT_EQ(moves(each), 0) << each;
}

TEST(ObjectNavEpisode, RewardsAreTheOnesOfTheField) {
  Drawn drawn(kRoom, 3, 5, 0);
  EXPECT_EQ(drawn.distance(3, 5), 1);
  EXPECT_FLOAT_EQ(drawn.take(Move::rotate_left).reward, -0.01f);
  EXPECT_FLOAT_EQ(drawn.take(Move::rotate_right).reward, -0.01f);
  EXPECT_FLOAT_EQ(drawn.take(Move::move_ahead).reward, -0.01f + 0.5f) << "half a metre nearer";
  const StepOutcome end = drawn.take(Move::done);
  EXPECT_TRUE(end.has_ended);
  EXPECT_FLOAT_EQ(end.reward, -0.01f + 10);
  EXPECT_NEAR(drawn.episode.reward, -0.04 + 0.5 + 10, 1e-9);
  const StepOutcome failed = Drawn(kRoom, 3, 5, 0).take(Move::done);
  EXPECT_TRUE(failed.has_ended);
  EXPECT_FLOAT_EQ(failed.reward, -0.01f);
}

TEST(ObjectNavEpisode, ShapingAddsUpToTheDistanceThatWasGained) {
  const EnvironmentSettings settings;
  Scene scene;
  Random random(3);
  for (int number = 0; number < 300; ++number) {
    begin_episode(settings, scene, number);
    const int first = scene.episode.shortest;
    double sum = 0;
    for (bool has_ended = false; !has_ended;) {
      const auto move = static_cast<Move>(random.below(kActions - 1));
      const StepOutcome outcome =
          take_step(settings, scene.house, scene.field, move, scene.episode);
      sum += outcome.reward;
      has_ended = outcome.has_ended;
    }
    const int last = scene.field.distance[static_cast<std::size_t>(scene.episode.cell)];
    ASSERT_EQ(scene.episode.steps, settings.step_limit);
    ASSERT_NEAR(sum, (first - last) * kCellMetres - 0.01 * settings.step_limit, 1e-4);
    ASSERT_NEAR(sum, scene.episode.reward, 1e-4);
  }
}

TEST(ObjectNavEpisode, SplIsTheShareThatTheShortestPathIsOfThePathTaken) {
  Episode episode;
  episode.shortest = 6;
  episode.moves = 8;
  const StepOutcome success{10, true, true};
  EXPECT_DOUBLE_EQ(success_by_path_length(episode, success), 0.75);
  EXPECT_DOUBLE_EQ(success_by_path_length(episode, {0, true, false}), 0);
  episode.moves = 6;
  EXPECT_DOUBLE_EQ(success_by_path_length(episode, success), 1);
}

TEST(ObjectNavEpisode, WhereNoStepIsNeededSplIsANumber) {
  Episode episode;
  const StepOutcome success{10, true, true};
  EXPECT_EQ(success_by_path_length(episode, success), 1);
  episode.moves = 3;
  EXPECT_EQ(success_by_path_length(episode, success), 0);
}

TEST(ObjectNavEpisode, StartsAsFarFromTheGoalAsAskedFor) {
  EnvironmentSettings settings;
  settings.least_start_distance = 2.5;
  Scene scene;
  for (int number = 0; number < 1000; ++number) {
    begin_episode(settings, scene, number);
    const Episode& episode = scene.episode;
    EXPECT_EQ(episode.shortest, scene.field.distance[static_cast<std::size_t>(episode.cell)]);
    if (episode.shortest >= 5) continue;
    for (const Cell cell : scene.house.free_cells()) {
      ASSERT_LE(scene.field.distance[static_cast<std::size_t>(cell)], episode.shortest)
          << "there is a farther cell";
    }
  }
}

TEST(ObjectNavEpisode, AnEpisodeIsTheSameWhateverCameBeforeIt) {
  const EnvironmentSettings settings;
  Scene in_order, at_once;
  for (int number = 0; number <= 37; ++number) begin_episode(settings, in_order, number);
  begin_episode(settings, at_once, 37);
  EXPECT_EQ(in_order.house.cells, at_once.house.cells);
  EXPECT_EQ(in_order.episode.cell, at_once.episode.cell);
  EXPECT_EQ(in_order.episode.goal, at_once.episode.goal);
}

TEST(ObjectNavEpisode, AHouseServesTheNumberOfEpisodesThatIsSet) {
  EnvironmentSettings settings;
  settings.episodes_per_house = 4;
  Scene scene;
  int houses = 0;
  std::array<std::uint8_t, kGridCells> before{};
  for (int number = 0; number < 40; ++number) {
    begin_episode(settings, scene, number);
    houses += scene.house.cells == before ? 0 : 1;
    before = scene.house.cells;
  }
  EXPECT_EQ(houses, 10);
}

TEST(ObjectNavEpisode, ThePolicyThatKnowsTheHouseAlwaysSucceedsByTheShortestPath) {
  const EnvironmentSettings settings;
  Scene scene;
  scene.set = EpisodeSet::validation;
  for (int number = 0; number < 2000; ++number) {
    begin_episode(settings, scene, number);
    StepOutcome outcome;
    while (!outcome.has_ended) {
      const Move move = shortest_path_move(scene.house, scene.field, scene.episode);
      outcome = take_step(settings, scene.house, scene.field, move, scene.episode);
    }
    ASSERT_TRUE(outcome.is_success) << "episode " << number;
    ASSERT_EQ(success_by_path_length(scene.episode, outcome), 1);
  }
}

namespace {

/// The moves of a script in a drawn house, until the episode ends or `most` are taken.
std::vector<Move> scripted_moves(Drawn& drawn, ScriptGoals walks_to, int most) {
  Random random(3);
  std::vector<Move> moves;
  std::array<std::uint8_t, kObservationBytes> observation;
  for (StepOutcome end; !end.has_ended && static_cast<int>(moves.size()) < most;) {
    observe(drawn.house, drawn.episode, observation.data());
    moves.push_back(scripted_move(drawn.settings, walks_to, observation.data(), random));
    end = drawn.take(moves.back());
  }
  return moves;
}

}  // namespace

TEST(ObjectNavScript, WalksToAGoalThatItSeesAndSaysSo) {
  Drawn drawn(kRoom, 3, 5, 0);
  EXPECT_EQ(scripted_moves(drawn, ScriptGoals::goal, 10),
            (std::vector<Move>{Move::move_ahead, Move::done}));
  Drawn aside({"########", "#......#", "#.....A#", "#......#", "#......#", "########"}, 1, 4, 0);
  scripted_moves(aside, ScriptGoals::goal, 20);
  EXPECT_GT(aside.episode.reward, 9) << "it was not found";
  EXPECT_LE(aside.episode.steps, 12);
}

TEST(ObjectNavScript, OnlyTheOneForDoorsWalksToADoor) {
  const std::vector<std::string> rows = {"###########", "#....#....#", "#....+....#", "#....#....#",
                                         "###########"};
  Drawn drawn(rows, 1, 2, 1);
  const auto moves = scripted_moves(drawn, ScriptGoals::goal_and_doors, 4);
  EXPECT_EQ(moves, std::vector<Move>(4, Move::move_ahead));
  EXPECT_EQ(drawn.house.seen(drawn.episode.cell), kDoor);
  int turned = 0;
  for (int y = 1; y <= 3; ++y) {
    Drawn other(rows, 1, y, 1);
    for (const Move move : scripted_moves(other, ScriptGoals::goal, 4)) {
      turned += move == Move::move_ahead ? 0 : 1;
    }
  }
  EXPECT_GT(turned, 0) << "wander goes to doors, too";
}

TEST(ObjectNavScript, TurnsToTheOpenSideWhereItIsBlocked) {
  for (const auto& [x, expected] : {std::pair{1, Move::rotate_right}, {8, Move::rotate_left}}) {
    Drawn drawn({"##########", "#........#", "#........#", "#........#", "##########"}, x, 1, 0);
    EXPECT_EQ(scripted_moves(drawn, ScriptGoals::goal_and_doors, 1), std::vector<Move>{expected});
  }
}
