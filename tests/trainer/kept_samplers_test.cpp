// SPDX-License-Identifier: MIT
// Samplers that a checkpoint keeps, put back on other numbers of ranks.
#include "trainer/reinforcement/kept_samplers.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tests/trainer/ranks.h"
#include "trainer/objectnav/samplers.h"
#include "trainer/reinforcement/encoded_policy.h"

using namespace dtool::trainer;

namespace {

constexpr std::uint64_t kSeed = 3;
constexpr std::int64_t kHidden = 5;
const PolicySettings kSmallPolicy{.embedding = 4, .memory = PolicyMemory::gru, .hidden = kHidden};

/// The samplers of one rank.
struct Rank {
  explicit Rank(const SamplerRange& its, std::uint64_t seed = kSeed,
                const PolicySettings& settings = kSmallPolicy)
      : mine(its),
        policy(objectnav_spec(), settings, at::kCPU),
        samplers(EnvironmentSettings(), EpisodeSet::training, seed, its.first,
                 static_cast<int>(its.count)),
        collector(samplers, policy, 0.99, seed, its.first) {}

  void collect(std::int64_t steps) {
    Rollout rollout(steps, samplers.count(), policy);
    collector.collect(rollout, 0, [](std::int64_t) { return false; });
  }

  SamplerRange mine;
  EncodedPolicy policy;
  Samplers samplers;
  Collector collector;
};

/// What a checkpoint keeps of them.
std::vector<NamedTensor> kept_of(Rank& all) {
  all.collect(230);
  return gather_samplers(Group{}, {all.mine}, all.samplers, all.collector);
}

template <class Values>
Values part(const Values& all, std::size_t first, std::size_t count, std::size_t each) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * each);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * each)};
}

}  // namespace

TEST(KeptSamplers, GoOnByTheirNumbersWhicheverRankHasThemNow) {
  Rank all({0, 8});
  const auto kept = kept_of(all);
  const auto state = all.samplers.state();
  const std::size_t each = state.size() / 8;
  for (const auto& [number, there] : {std::pair{0, 3}, {1, 3}, {2, 2}, {3, 0}}) {
    Rank rank({3 * number, 3});
    const auto fresh = rank.samplers.state();
    EXPECT_EQ(restore_samplers(kept, rank.mine, rank.samplers, rank.collector), 8);
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
  Rank all({0, 8});
  auto kept = kept_of(all);
  Rank other({0, 8}, kSeed + 1);
  const auto before = other.samplers.state();
  EXPECT_EQ(restore_samplers(kept, other.mine, other.samplers, other.collector), 0);
  EXPECT_EQ(other.samplers.state(), before);
  EXPECT_TRUE(other.collector.memory().eq(0).all().item<bool>());

  Rank same({0, 8});
  EXPECT_EQ(restore_samplers({}, same.mine, same.samplers, same.collector), 0);
  for (NamedTensor& each : kept) {
    if (each.name == "memory") each.tensor = each.tensor.narrow(1, 0, 4);
  }
  EXPECT_EQ(restore_samplers(kept, same.mine, same.samplers, same.collector), 0);
  EXPECT_EQ(same.samplers.state(), Rank({0, 8}).samplers.state());
}

TEST(KeptSamplers, OfAFileThatSomebodyMadeChangeNothing) {
  Rank all({0, 8});
  const auto kept = kept_of(all);
  const auto is_refused = [&](const char* name, const at::Tensor& instead) {
    auto spoilt = kept;
    for (NamedTensor& each : spoilt) {
      if (each.name == name) each.tensor = instead;
    }
    Rank rank({0, 8});
    return restore_samplers(spoilt, rank.mine, rank.samplers, rank.collector) == 0;
  };
  const at::Tensor& states = kept.front().tensor;
  ASSERT_EQ(kept.front().name, "samplers");
  EXPECT_FALSE(is_refused("samplers", states));
  EXPECT_TRUE(is_refused("samplers", states.to(at::kInt)));
  EXPECT_TRUE(is_refused("keep", at::zeros({0})));
  // An episode's heading, head, previous action, steps and moves, of 8 bytes each.
  for (const std::int64_t value : {2, 3, 4, 6, 7}) {
    at::Tensor other = states.clone();
    other[3].narrow(0, value * 8, 8).fill_(0xfa);
    EXPECT_TRUE(is_refused("samplers", other)) << value;
  }
}

// A policy may have no memory: then there are rows without values.
TEST(KeptSamplers, AreGatheredFromUnequalShares) {
  for (const PolicySettings& settings : {kSmallPolicy, PolicySettings()}) {
    Rank all({0, 8}, kSeed, settings);
    const auto kept = kept_of(all);
    const std::vector<SamplerRange> shares = {{0, 3}, {3, 1}, {4, 4}};
    on_every_rank([&](const Group& group) {
      static std::mutex one_at_a_time;  // LibTorch's default generator
      std::optional<Rank> rank;
      {
        const std::lock_guard lock(one_at_a_time);
        rank.emplace(shares[static_cast<std::size_t>(group.rank)], kSeed, settings);
      }
      EXPECT_EQ(restore_samplers(kept, rank->mine, rank->samplers, rank->collector), 8);
      const auto again = gather_samplers(group, shares, rank->samplers, rank->collector);
      ASSERT_EQ(again.size(), kept.size());
      for (std::size_t i = 0; i < kept.size(); ++i) {
        EXPECT_EQ(again[i].name, kept[i].name);
        EXPECT_TRUE(again[i].tensor.equal(kept[i].tensor)) << kept[i].name;
      }
    });
  }
}

TEST(SamplerShares, OfAMachineAreItsRanksAndDifferByOneAtMost) {
  const auto counts = [](const std::vector<int>& machines, const DdPpoSettings& settings) {
    std::vector<Member> members;
    for (const int machine : machines) {
      members.push_back({static_cast<int>(members.size()), machine, "h", ""});
    }
    std::vector<std::int64_t> found;
    std::int64_t next = 0;
    for (const SamplerRange& each : shares_of(members, settings)) {
      EXPECT_EQ(each.first, next);
      next += each.count;
      found.push_back(each.count);
    }
    EXPECT_EQ(count_all(shares_of(members, settings)), next);
    return found;
  };
  DdPpoSettings settings;
  settings.samplers = 8;
  settings.samplers_per = SamplersPer::machine;
  using Counts = std::vector<std::int64_t>;
  EXPECT_EQ(counts({0}, settings), Counts({8}));
  EXPECT_EQ(counts({0, 1, 2}, settings), Counts({8, 8, 8}));
  EXPECT_EQ(counts({0, 0, 0, 1, 1, 1}, settings), Counts({3, 3, 2, 3, 3, 2}));
  EXPECT_EQ(counts({0, 1, 0, 1, 0}, settings), Counts({3, 4, 3, 4, 2}));
  settings.samplers_per = SamplersPer::rank;
  EXPECT_EQ(counts({0, 0, 1}, settings), Counts({8, 8, 8}));
  EXPECT_EQ(shares_of({}, settings)[0].count, 8);
}

TEST(SamplerShares, NodesAreMachinesOrRanks) {
  DdPpoSettings settings;
  settings.samplers = 8;
  settings.samplers_per = SamplersPer::machine;
  const std::vector<Member> members = {{0, 0, "a", ""}, {1, 1, "b", ""}, {2, 1, "b", ""}};
  EXPECT_EQ(nodes_of(members, settings).count, 2);
  EXPECT_EQ(nodes_of(members, settings).smallest_share, 4);
  settings.samplers_per = SamplersPer::rank;
  EXPECT_EQ(nodes_of(members, settings).count, 3);
  EXPECT_EQ(nodes_of(members, settings).smallest_share, 8);
}
