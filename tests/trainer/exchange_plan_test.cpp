// SPDX-License-Identifier: MIT
// Plays each plan through for worlds of 1 to 17 ranks, as PlanProgress lets each go on, with what
// is under way in queues; sums are compared exactly, since the addends are whole numbers.
#include "trainer/comm/exchange_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

using namespace dtool::trainer;

namespace {

using Tensor = std::vector<float>;

/// What is on its way from one rank to another.
using Stream = std::deque<float>;

struct World {
  std::vector<Plan> plans;
  std::vector<Tensor> tensors;
  std::map<std::pair<int, int>, Stream> streams{};
  std::minstd_rand random{};  ///< how much goes out, and comes in, at once

  std::int64_t some_of(std::int64_t most) {
    return most <= 1 ? most : 1 + static_cast<std::int64_t>(random()) % most;
  }

  void send(int rank, PlanProgress& progress) {
    const std::int64_t count = some_of(progress.may_send());
    if (count == 0) return;
    const float* from = tensors[static_cast<std::size_t>(rank)].data() + progress.out().send.begin +
                        progress.sent();
    Stream& stream = streams[{rank, progress.out().send_to}];
    stream.insert(stream.end(), from, from + count);
    progress.add_sent(count);
  }

  void receive(int rank, PlanProgress& progress) {
    if (!progress.is_receiving()) return;
    Stream& stream = streams[{progress.in().receive_from, rank}];
    const auto there = static_cast<std::int64_t>(stream.size());
    const std::int64_t count = some_of(std::min(progress.may_receive(), there));
    const Combine how = progress.in().combine;
    float* into = tensors[static_cast<std::size_t>(rank)].data() + progress.in().receive.begin +
                  progress.received();
    for (std::int64_t i = 0; i < count; ++i) {
      into[i] = how == Combine::add ? into[i] + stream[static_cast<std::size_t>(i)]
                                    : stream[static_cast<std::size_t>(i)];
    }
    stream.erase(stream.begin(), stream.begin() + count);
    progress.add_received(count);
  }

  /// Until nobody can go on; then everybody must be done and every message taken. Which rank goes
  /// on, and how far, is left to chance.
  void play() {
    std::vector<PlanProgress> progress(plans.begin(), plans.end());
    const int turns = 4000 + 600 * static_cast<int>(plans.size() * plans.size());
    const auto all_done = [&] { return std::ranges::all_of(progress, &PlanProgress::is_done); };
    for (int turn = 0; turn < turns && !all_done(); ++turn) {
      const auto rank = static_cast<std::size_t>(random()) % plans.size();
      send(static_cast<int>(rank), progress[rank]);
      receive(static_cast<int>(rank), progress[rank]);
    }
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      EXPECT_TRUE(progress[rank].is_done()) << "rank " << rank << " waits for ever";
    }
    for (const auto& [way, stream] : streams) {
      EXPECT_TRUE(stream.empty()) << "nobody takes what " << way.first << " sends " << way.second;
    }
  }
};

World play(Way algorithm, int size, std::int64_t elements) {
  std::vector<Plan> plans;
  std::vector<Tensor> tensors;
  for (int rank = 0; rank < size; ++rank) {
    plans.push_back(plan_all_reduce(algorithm, rank, size, elements));
    Tensor tensor;
    for (int i = 0; i < elements; ++i) tensor.push_back(static_cast<float>((rank + 1) * 100 + i));
    tensors.push_back(tensor);
  }
  World world{plans, tensors};
  world.play();
  return world;
}

Tensor expected_sum(int size, std::int64_t elements) {
  Tensor sum;
  for (int i = 0; i < elements; ++i) {
    sum.push_back(static_cast<float>(100 * size * (size + 1) / 2 + size * i));
  }
  return sum;
}

std::size_t most_rounds(const World& world) {
  std::size_t most = 0;
  for (const Plan& each : world.plans) most = std::max(most, each.size());
  return most;
}

/// What the busiest rank sends.
std::int64_t most_sent(const World& world) {
  std::int64_t most = 0;
  for (const Plan& plan : world.plans) {
    std::int64_t sum = 0;
    for (const Round& each : plan) sum += each.send_to == kNobody ? 0 : each.send.size();
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

TEST(ExchangePlan, AllReduceLeavesTheSumOnEveryRank) {
  for (const Way algorithm : kAlgorithms) {
    for (int size = 1; size <= 17; ++size) {
      for (const std::int64_t elements : {0, 1, 2, 7, 16, 1000}) {
        SCOPED_TRACE(testing::Message() << to_string(algorithm) << ' ' << size << ' ' << elements);
        const World world = play(algorithm, size, elements);
        for (const Tensor& each : world.tensors) EXPECT_EQ(each, expected_sum(size, elements));
      }
    }
  }
}

TEST(ExchangePlan, EveryRankHasTheSameBitsThoughAdditionRounds) {
  for (const Way algorithm : kAlgorithms) {
    for (int size = 2; size <= 17; ++size) {
      std::vector<Plan> plans;
      std::vector<Tensor> tensors;
      for (int rank = 0; rank < size; ++rank) {
        plans.push_back(plan_all_reduce(algorithm, rank, size, 40));
        Tensor tensor;
        for (int i = 0; i < 40; ++i) {
          tensor.push_back(1.0F / static_cast<float>(3 + 7 * i + 13 * rank * rank));
        }
        tensors.push_back(tensor);
      }
      World world{plans, tensors};
      world.play();
      for (const Tensor& each : world.tensors) {
        EXPECT_EQ(each, world.tensors[0]) << to_string(algorithm) << ' ' << size;
      }
    }
  }
}

TEST(ExchangePlan, RoundsAndBytesAreThoseOfTheTextbook) {
  const std::int64_t elements = 840;  // divisible by 2 to 8
  for (int size = 2; size <= 8; ++size) {
    const World ring = play(Way::ring, size, elements);
    EXPECT_EQ(most_rounds(ring), static_cast<std::size_t>(2 * (size - 1)));
    EXPECT_EQ(most_sent(ring), 2 * (size - 1) * elements / size);
    const World pairwise = play(Way::pairwise, size, elements);
    EXPECT_EQ(most_rounds(pairwise), static_cast<std::size_t>(2 * (size - 1)));
    EXPECT_EQ(most_sent(pairwise), 2 * (size - 1) * elements / size);
  }
  const World halving = play(Way::halving_doubling, 8, elements);
  EXPECT_EQ(most_rounds(halving), 6U);
  EXPECT_EQ(most_sent(halving), 2 * 7 * elements / 8);
  const World doubling = play(Way::doubling, 8, elements);
  EXPECT_EQ(most_rounds(doubling), 3U);
  EXPECT_EQ(most_sent(doubling), 3 * elements);
}

TEST(ExchangePlan, PeersAreEachOthersWhateverTheNumberOfElements) {
  for (const Way algorithm : kAlgorithms) {
    for (int size = 2; size <= 300; size += size < 70 ? 1 : 23) {
      std::vector<std::set<int>> peers;
      for (int rank = 0; rank < size; ++rank) {
        peers.push_back(peers_in(plan_all_reduce(algorithm, rank, size, 0)));
        EXPECT_EQ(peers.back(), peers_in(plan_all_reduce(algorithm, rank, size, 100'000)));
      }
      for (int rank = 0; rank < size; ++rank) {
        for (const int peer : peers[static_cast<std::size_t>(rank)]) {
          EXPECT_TRUE(peers[static_cast<std::size_t>(peer)].contains(rank))
              << to_string(algorithm) << ": " << rank << " and " << peer << " of " << size;
        }
      }
    }
  }
}

TEST(PlanProgress, AMessageWaitsForThoseItIsMadeOfAndForNoOthers) {
  const Section left{0, 10};
  const Section right{10, 30};
  const Plan plan = {{1, left, 2, right, Combine::add},
                     {3, right, 4, right, Combine::replace},
                     {5, left, kNobody, {}, Combine::add}};
  PlanProgress progress(plan);
  EXPECT_EQ(progress.may_send(), 10);
  EXPECT_EQ(progress.may_receive(), 20);
  progress.add_sent(10);
  EXPECT_EQ(progress.out().send_to, 3);
  EXPECT_EQ(progress.may_send(), 0) << "nothing has been added";
  progress.add_received(5);
  EXPECT_EQ(progress.may_send(), 5) << "what has been added can go on";
  progress.add_received(15);
  EXPECT_EQ(progress.may_receive(), 0) << "what goes out must not be replaced before";
  progress.add_sent(8);
  EXPECT_EQ(progress.may_receive(), 8);
  progress.add_sent(12);
  EXPECT_EQ(progress.out().send_to, 5);
  EXPECT_EQ(progress.may_send(), 10) << "though nothing has come from 4";
  progress.add_sent(10);
  EXPECT_FALSE(progress.is_done());
  progress.add_received(20);
  EXPECT_TRUE(progress.is_done());
}

TEST(ExchangePlan, PartsCoverEverythingOnce) {
  for (int parts = 1; parts <= 5; ++parts) {
    std::int64_t reached = 0;
    for (int i = 0; i < parts; ++i) {
      EXPECT_EQ(part_of(7, parts, i).begin, reached);
      reached = part_of(7, parts, i).end;
    }
    EXPECT_EQ(reached, 7);
  }
}

TEST(ExchangePlan, OnlyAlgorithmsOfOursHaveOne) {
  for (const Way way : {Way::automatic, Way::library, Way::links}) {
    EXPECT_THROW(plan_all_reduce(way, 0, 2, 8), std::logic_error);
  }
}
