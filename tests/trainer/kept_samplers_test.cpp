// SPDX-License-Identifier: MIT
// Samplers that a checkpoint keeps, put back on other numbers of ranks.
#include "trainer/objectnav/agent/kept_samplers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

using namespace dtool::trainer;

namespace {

constexpr std::uint64_t kSeed = 3;
constexpr std::int64_t kHidden = 5;

/// The samplers of one rank, which need not all be a rank's own.
struct Rank {
  Rank(int number, int count, std::uint64_t seed = kSeed)
      : policy(NetworkSettings{4, kHidden}, at::kCPU),
        samplers(EnvironmentSettings(), EpisodeSet::training, seed, number * count, count),
        collector(samplers, 0, policy, seed, number * count) {
    group.rank = number;
  }

  void collect(std::int64_t steps) {
    Rollout rollout(steps, samplers.count(), kHidden);
    collector.collect(rollout, 0, [](std::int64_t) { return false; });
  }

  Group group;
  ActorCritic policy;
  Samplers samplers;
  Collector collector;
};

/// What two ranks with four samplers each would keep.
std::vector<NamedTensor> kept_by_two(Rank& all) {
  all.collect(230);
  std::vector<NamedTensor> kept = gather_samplers(all.group, all.samplers, all.collector);
  for (NamedTensor& each : kept) each.tensor = each.tensor.reshape({2, -1});
  return kept;
}

template <class Values>
Values part(const Values& all, std::size_t first, std::size_t count, std::size_t each) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * each);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * each)};
}

}  // namespace

TEST(KeptSamplers, GoOnByTheirNumbersWhicheverRankHasThemNow) {
  Rank all(0, 8);
  const auto kept = kept_by_two(all);
  const auto state = all.samplers.state();
  const std::size_t each = state.size() / 8;
  for (const auto& [number, there] : {std::pair{0, 3}, {1, 3}, {2, 2}, {3, 0}}) {
    Rank rank(number, 3);
    const auto fresh = rank.samplers.state();
    rank.group.size = 4;
    EXPECT_EQ(restore_samplers(kept, rank.group, rank.samplers, rank.collector), 8);
    const auto now = rank.samplers.state();
    const auto mine = static_cast<std::size_t>(there);
    EXPECT_EQ(
        part(now, 0, mine, each),
        part(state, std::min<std::size_t>(8, 3 * static_cast<std::size_t>(number)), mine, each));
    EXPECT_EQ(part(now, mine, 3 - mine, each), part(fresh, mine, 3 - mine, each));
    const at::Tensor memory = rank.collector.memory();
    EXPECT_TRUE(memory.narrow(0, there, 3 - there).eq(0).all().item<bool>());
    if (there == 0) continue;
    EXPECT_TRUE(
        memory.narrow(0, 0, there).equal(all.collector.memory().narrow(0, 3 * number, there)));
    EXPECT_TRUE(rank.collector.keep()
                    .narrow(0, 0, there)
                    .equal(all.collector.keep().narrow(0, 3 * number, there)));
  }
}

TEST(KeptSamplers, OfAnotherSeedOrMemoryChangeNothing) {
  Rank all(0, 8);
  auto kept = kept_by_two(all);
  Rank other(0, 8, kSeed + 1);
  const auto before = other.samplers.state();
  EXPECT_EQ(restore_samplers(kept, other.group, other.samplers, other.collector), 0);
  EXPECT_EQ(other.samplers.state(), before);
  EXPECT_TRUE(other.collector.memory().eq(0).all().item<bool>());

  Rank same(0, 8);
  EXPECT_EQ(restore_samplers({}, same.group, same.samplers, same.collector), 0);
  for (NamedTensor& each : kept) {
    if (each.name == "memory") each.tensor = each.tensor.narrow(1, 0, 4);
  }
  EXPECT_EQ(restore_samplers(kept, same.group, same.samplers, same.collector), 0);
  EXPECT_EQ(same.samplers.state(), Rank(0, 8).samplers.state());
}
