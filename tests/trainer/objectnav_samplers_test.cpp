// SPDX-License-Identifier: MIT
// Also replaces operator new, to show that stepping allocates nothing.
#include "trainer/objectnav/samplers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <vector>

#include "trainer/data/sampler.h"
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
  explicit Arrays(int count)
      : actions(static_cast<std::size_t>(count)),
        rewards(actions.size()),
        endings(actions.size()),
        observations(actions.size() * kObservationBytes),
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

TEST(ObjectNavSamplers, RestoredTheyGoOnBitForBit) {
  Samplers samplers({}, EpisodeSet::training, 3, 0, 9);
  Arrays arrays(9);
  for (int step = 0; step < 137; ++step) {
    draw_actions(arrays, 0, step);
    step_all(samplers, arrays);
  }
  const auto state = samplers.state();
  Samplers other({}, EpisodeSet::training, 3, 0, 9);
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

TEST(ObjectNavSamplers, AStateOfOtherSamplersIsRefused) {
  Samplers samplers({}, EpisodeSet::training, 3, 0, 9);
  Samplers fewer({}, EpisodeSet::training, 3, 0, 8);
  Samplers elsewhere({}, EpisodeSet::training, 4, 0, 9);
  EXPECT_THROW(fewer.restore(samplers.state()), std::runtime_error);
  EXPECT_THROW(elsewhere.restore(samplers.state()), std::runtime_error);
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
  Samplers samplers({}, EpisodeSet::training, 9, 0, 16);
  Arrays arrays(16);
  const long before = allocations;
  for (int step = 0; step < 3000; ++step) {
    draw_actions(arrays, 0, step);
    step_all(samplers, arrays);
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
