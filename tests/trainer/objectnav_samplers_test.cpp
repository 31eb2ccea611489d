// SPDX-License-Identifier: MIT
// Also replaces operator new, to show that stepping allocates nothing.
#include "trainer/objectnav/samplers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/data/sampler.h"
#include "trainer/objectnav/camera.h"
#include "trainer/objectnav/episode.h"
#include "trainer/objectnav/house.h"

namespace {

thread_local long allocations = 0;

}  // namespace

// Counts what is allocated; replaces the standard library's.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace {

using namespace dtool::trainer;

/// What a step of some samplers reads and writes.
struct Arrays {
  explicit Arrays(int count, Senses senses = Senses::cells)
      : actions(static_cast<std::size_t>(count)),
        rewards(actions.size()),
        endings(actions.size()),
        observations(actions.size() * static_cast<std::size_t>(observation_bytes(senses))),
        last_observations(observations.size()) {}

  bool operator==(const Arrays&) const = default;
  operator StepArrays() { return {actions, rewards, endings, observations, last_observations}; }

  std::vector<float> actions;
  std::vector<float> rewards;
  std::vector<Ending> endings;
  std::vector<std::uint8_t> observations;
  std::vector<std::uint8_t> last_observations;
};

/// Each action as likely as the others, the same for a global sampler and step always.
void draw_actions(Arrays& arrays, std::int64_t first_sampler, int step) {
  for (std::size_t i = 0; i < arrays.actions.size(); ++i) {
    const auto sampler = static_cast<std::uint64_t>(first_sampler) + i;
    Random random(sampler * 1'000'003 + static_cast<std::uint64_t>(step));
    arrays.actions[i] = static_cast<float>(random.below(kActions));
  }
}

void step_all(Samplers& samplers, Arrays& arrays) {
  samplers.begin(0, samplers.count(), arrays);
  samplers.wait();
}

template <class Value>
std::vector<Value> joined(std::vector<Value> one, const std::vector<Value>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

}  // namespace

TEST(ObjectNavSamplers, TwoHalvesSeeWhatOneWholeSees) {
  Samplers whole({}, EpisodeSet::training, 5, 100, 12);
  Samplers first({}, EpisodeSet::training, 5, 100, 7);
  Samplers second({}, EpisodeSet::training, 5, 107, 5);
  Arrays all(12), left(7), right(5);
  whole.observe(all.observations);
  first.observe(left.observations);
  second.observe(right.observations);
  ASSERT_EQ(all.observations, joined(left.observations, right.observations));
  for (int step = 0; step < 500; ++step) {
    draw_actions(all, 100, step);
    draw_actions(left, 100, step);
    draw_actions(right, 107, step);
    step_all(whole, all);
    step_all(first, left);
    step_all(second, right);
    ASSERT_EQ(all.observations, joined(left.observations, right.observations));
    ASSERT_EQ(all.rewards, joined(left.rewards, right.rewards));
    ASSERT_EQ(all.endings, joined(left.endings, right.endings));
  }
  const EpisodeSums sums = whole.take_sums();
  EpisodeSums halves = first.take_sums();
  halves += second.take_sums();
  EXPECT_GT(sums.episodes, 100);
  EXPECT_EQ(sums.episodes, halves.episodes);
  EXPECT_EQ(sums.scores[0], halves.scores[0]);
  EXPECT_EQ(sums.steps, halves.steps);
  EXPECT_NEAR(sums.reward, halves.reward, 1e-6);
}

TEST(ObjectNavSamplers, AdvanceToTheNextHouse) {
  EnvironmentSettings settings;
  settings.episodes_per_house = 3;
  settings.step_limit = 20;
  Samplers advanced(settings, EpisodeSet::training, 5, 0, 2);
  advanced.advance();
  Samplers stepped(settings, EpisodeSet::training, 5, 0, 2);
  Arrays seen(2), expected(2);
  std::fill(expected.actions.begin(), expected.actions.end(), static_cast<float>(Move::done));
  for (int episode = 0; episode < 3; ++episode) step_all(stepped, expected);
  advanced.observe(seen.observations);
  EXPECT_EQ(seen.observations, expected.observations) << "the first episode of the second house";
  EXPECT_EQ(advanced.take_sums().episodes, 0);
  step_all(stepped, expected);  // within the house
  stepped.take_sums();
  EXPECT_NE(advanced.state(), stepped.state());
  advanced.advance();
  stepped.advance();
  EXPECT_EQ(advanced.state(), stepped.state()) << "the third house";
}

TEST(ObjectNavSamplers, ASeedASetAndANumberEachGiveOtherEpisodes) {
  const auto first_observations = [](EpisodeSet set, std::uint64_t seed, std::int64_t first) {
    const Samplers samplers({}, set, seed, first, 8);
    Arrays arrays(8);
    samplers.observe(arrays.observations);
    return arrays.observations;
  };
  const auto base = first_observations(EpisodeSet::training, 1, 0);
  EXPECT_EQ(base, first_observations(EpisodeSet::training, 1, 0));
  EXPECT_NE(base, first_observations(EpisodeSet::training, 2, 0));
  EXPECT_NE(base, first_observations(EpisodeSet::training, 1, 8));
  EXPECT_NE(base, first_observations(EpisodeSet::validation, 1, 0));
}

namespace {

/// The settings that change what a step does or shows.
EnvironmentSettings seen_and_noisy() {
  EnvironmentSettings settings;
  settings.senses = Senses::rgbd;
  settings.of_a_class = 2;
  settings.action_noise = 0.3;
  return settings;
}

void expect_the_same_after_restoring(const EnvironmentSettings& settings) {
  Samplers samplers(settings, EpisodeSet::training, 3, 0, 9);
  Arrays arrays(9, settings.senses);
  for (int step = 0; step < 137; ++step) {
    draw_actions(arrays, 0, step);
    step_all(samplers, arrays);
  }
  const auto state = samplers.state();
  Samplers other(settings, EpisodeSet::training, 3, 0, 9);
  Arrays others = arrays;
  draw_actions(others, 50, 0);
  step_all(other, others);
  other.restore(state);
  EXPECT_EQ(other.state(), state);
  for (int step = 137; step < 500; ++step) {
    draw_actions(arrays, 0, step);
    draw_actions(others, 0, step);
    step_all(samplers, arrays);
    step_all(other, others);
    ASSERT_EQ(arrays, others);
  }
  EXPECT_EQ(other.state(), samplers.state());
  const EpisodeSums sums = samplers.take_sums();
  EXPECT_EQ(sums.reward, other.take_sums().reward);
  EXPECT_EQ(other.take_sums().episodes, 0) << "taken already";
}

}  // namespace

TEST(ObjectNavSamplers, RestoredTheyGoOnBitForBit) {
  expect_the_same_after_restoring({});
  expect_the_same_after_restoring(seen_and_noisy());
}

// A checkpoint of a time when rows of the grid had 48 cells holds them so.
TEST(ObjectNavSamplers, AStateHasCellsOfRowsOf48UnlessHousesAreLarger) {
  const auto first_cell = [](const EnvironmentSettings& settings) {
    const auto state = Samplers(settings, EpisodeSet::training, 3, 5, 1).state();
    std::int64_t cell = 0;
    std::memcpy(&cell, &state[8], sizeof cell);
    Scene scene;
    scene.seed = 3;
    scene.sampler = 5;
    begin_episode(settings, scene, 0);
    const int x = x_of(scene.episode.cell) + 8, y = y_of(scene.episode.cell) + 8;
    return std::pair(cell, std::pair(x, y));
  };
  EnvironmentSettings settings;
  const auto [small, at] = first_cell(settings);
  EXPECT_EQ(small, 48 * at.second + at.first);
  settings.least_side = settings.most_side = 64;
  settings.most_rooms = 16;
  const auto [large, there] = first_cell(settings);
  EXPECT_EQ(large, 80 * there.second + there.first);
  expect_the_same_after_restoring(settings);
}

TEST(ObjectNavSamplers, WithACameraAnObservationIsItsPictureAndThreeBytes) {
  EnvironmentSettings settings;
  Samplers codes(settings, EpisodeSet::training, 3, 0, 4);
  settings.senses = Senses::rgbd;
  Samplers pictures(settings, EpisodeSet::training, 3, 0, 4);
  EXPECT_EQ(pictures.spec().observation_bytes(), kPictureBytes + 3);
  EXPECT_EQ(pictures.spec().observations[0].shape, (std::vector<std::int64_t>{4, 64, 64}));
  Arrays seen(4), looked(4, Senses::rgbd);
  Scene scene;
  scene.seed = 3;
  scene.sampler = 2;
  begin_episode(settings, scene, 0);
  for (int step = 0; step < 30; ++step) {
    for (float& each : seen.actions) each = static_cast<float>(step % 5);
    looked.actions = seen.actions;
    step_all(codes, seen);
    step_all(pictures, looked);
    EXPECT_EQ(seen.rewards, looked.rewards);
    take_step(settings, static_cast<Move>(step % 5), scene);
    std::vector<std::uint8_t> expected(kPictureBytes);
    take_picture(scene.house, scene.episode.cell, view_heading(scene.episode), kNoClass,
                 expected.data());
    const std::uint8_t* const bytes = &looked.observations[2 * (kPictureBytes + 3)];
    const std::uint8_t* const others = &seen.observations[2 * kObservationBytes];
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), bytes)) << "step " << step;
    ASSERT_TRUE(std::equal(bytes + kPictureBytes, bytes + kPictureBytes + 3, others + kGoalByte));
  }
}

TEST(ObjectNavSamplers, NoiseLeavesMovesOutAndTurnsTheWrongWay) {
  EnvironmentSettings settings;
  settings.action_noise = 0.4;
  int left = 0, none = 0, right = 0, stayed = 0, free_ways = 0;
  constexpr int kSteps = 4000;
  Scene scene;
  scene.seed = 1;
  begin_episode(settings, scene, 0);
  for (int step = 0; step < kSteps; ++step) {
    Heading before = scene.episode.heading;
    scene.episode.steps = step;
    take_step(settings, Move::rotate_left, scene);
    EXPECT_EQ(scene.episode.previous, static_cast<std::uint8_t>(Move::rotate_left));
    const int turn = turned(scene.episode.heading, -before);
    (turn == 3 ? left : turn == 0 ? none : right) += 1;
    const Cell cell = scene.episode.cell;
    const Cell ahead = kAhead[static_cast<std::size_t>(scene.episode.heading)];
    if (!scene.house.is_free(cell + ahead)) continue;
    ++free_ways;
    scene.episode.steps = kSteps + step;
    take_step(settings, Move::move_ahead, scene);
    stayed += scene.episode.cell == cell ? 1 : 0;
  }
  EXPECT_NEAR(left / double{kSteps}, 0.6, 0.04);
  EXPECT_NEAR(none / double{kSteps}, 0.2, 0.03);
  EXPECT_NEAR(right / double{kSteps}, 0.2, 0.03);
  EXPECT_GT(free_ways, 1000);
  EXPECT_NEAR(stayed / static_cast<double>(free_ways), 0.4, 0.06);
}

TEST(ObjectNavSamplers, AStateOfOtherSamplersIsRefused) {
  Samplers samplers({}, EpisodeSet::training, 3, 0, 9);
  Samplers fewer({}, EpisodeSet::training, 3, 0, 8);
  Samplers elsewhere({}, EpisodeSet::training, 4, 0, 9);
  EXPECT_THROW(fewer.restore(samplers.state()), std::runtime_error);
  EXPECT_THROW(elsewhere.restore(samplers.state()), std::runtime_error);
  for (const std::int64_t number : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
    auto edited = samplers.state();
    std::memcpy(edited.data(), &number, sizeof number);  // of the first sampler's episode
    try {
      samplers.restore(edited);
      FAIL() << number << " is taken";
    } catch (const std::runtime_error& problem) {
      EXPECT_STREQ(problem.what(), "the environments' state has numbers that no episode has");
    }
  }
}

TEST(ObjectNavSamplers, ARandomPolicyHardlyEverSucceeds) {
  Samplers samplers({}, EpisodeSet::validation, 1, 0, 50);
  Arrays arrays(50);
  for (int step = 0; step < 2000; ++step) {
    draw_actions(arrays, 0, step);
    step_all(samplers, arrays);
  }
  const EpisodeSums sums = samplers.take_sums();
  EXPECT_GT(sums.episodes, 10'000);
  EXPECT_GT(sums.scores[0], 0);
  EXPECT_LT(sums.scores[0], sums.episodes / 50);
}

TEST(ObjectNavSamplers, TheStepLimitTruncatesAndShowsTheLastState) {
  EnvironmentSettings settings;
  settings.step_limit = 3;
  Samplers samplers(settings, EpisodeSet::training, 1, 0, 30);
  Arrays arrays(30);
  int done = 0;
  for (int step = 0; step < 3; ++step) {
    draw_actions(arrays, 0, step);
    for (std::size_t i = 0; step < 2 && i < arrays.actions.size(); ++i) arrays.actions[i] = 1;
    std::ranges::fill(arrays.last_observations, 255);
    step_all(samplers, arrays);
    for (std::size_t i = 0; i < arrays.actions.size(); ++i) {
      const bool is_done = arrays.actions[i] == static_cast<float>(Move::done);
      done += is_done ? 1 : 0;
      const Ending expected = is_done     ? Ending::terminated
                              : step == 2 ? Ending::truncated
                                          : Ending::none;
      ASSERT_EQ(arrays.endings[i], expected);
      const std::uint8_t* const last = &arrays.last_observations[i * kObservationBytes];
      const auto previous = static_cast<std::uint8_t>(arrays.actions[i]);
      if (expected != Ending::truncated) {
        ASSERT_EQ(last[kPreviousActionByte], 255) << "it is not written";
      } else if (last[kPreviousActionByte] != kMoveWasBlocked) {
        ASSERT_EQ(last[kPreviousActionByte], previous);
      }
    }
  }
  EXPECT_GT(done, 0);
}

TEST(ObjectNavSamplers, StepsAllocateNothing) {
  Samplers looking(seen_and_noisy(), EpisodeSet::training, 9, 0, 4);
  Arrays pictures(4, Senses::rgbd);
  Samplers samplers({}, EpisodeSet::training, 9, 0, 16);
  Arrays arrays(16);
  const long before = allocations;
  for (int step = 0; step < 3000; ++step) {
    draw_actions(arrays, 0, step);
    step_all(samplers, arrays);
    if (step >= 300) continue;
    draw_actions(pictures, 0, step);
    step_all(looking, pictures);
  }
  EXPECT_EQ(allocations, before);
  EXPECT_GT(samplers.take_sums().episodes, 16 * 10 * 10) << "houses were made, too";
  const auto state = samplers.state();
  EXPECT_GT(allocations, before) << "allocations are not counted";
}

TEST(ObjectNavSamplers, OnlyTheAskedForEpisodesOfEachAreCounted) {
  EnvironmentSettings settings;
  settings.step_limit = 7;
  Samplers samplers(settings, EpisodeSet::validation, 1, 0, 20);
  samplers.count_only(3);
  Arrays arrays(20);
  int step = 0;
  for (; !samplers.counted_all(); ++step) {
    ASSERT_LT(step, 3 * settings.step_limit);
    draw_actions(arrays, 0, step);
    step_all(samplers, arrays);
  }
  EXPECT_EQ(samplers.take_sums().episodes, 60);
  step_all(samplers, arrays);
  EXPECT_EQ(samplers.take_sums().episodes, 0);
}

TEST(ThreadedEnvironments, StepWhatTheCallersThreadWouldHave) {
  for (const int threads : {0, 1, 3}) {
    Samplers alone({}, EpisodeSet::training, 5, 0, 10);
    Samplers shared({}, EpisodeSet::training, 5, 0, 10, threads);
    Arrays expected(10), arrays(10);
    for (int step = 0; step < 300; ++step) {
      draw_actions(expected, 0, step);
      draw_actions(arrays, 0, step);
      step_all(alone, expected);
      // Two groups, as a loop does that chooses one's actions while the other is stepped.
      shared.begin(0, 4, arrays);
      shared.wait();
      shared.begin(4, 10, arrays);
      shared.wait();
      ASSERT_EQ(arrays, expected) << threads << " threads";
    }
    EXPECT_EQ(alone.take_sums().reward, shared.take_sums().reward);
  }
}
