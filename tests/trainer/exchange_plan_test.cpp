// Plays each plan through for worlds of 1 to 17 ranks, with messages in queues; sums are compared
// exactly, since the addends are whole numbers.
#include "trainer/comm/exchange_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

using namespace dtool::trainer;

namespace {

using Tensor = std::vector<float>;

struct World {
  std::vector<Plan> plans;
  std::vector<Tensor> tensors;
  std::vector<std::size_t> rounds_done = std::vector<std::size_t>(plans.size());
  std::vector<bool> sent = std::vector<bool>(plans.size());
  std::map<std::pair<int, int>, std::deque<Tensor>> messages{};

  /// What this rank can do now of its round; true if it did something.
  bool advance(std::size_t rank) {
    if (rounds_done[rank] == plans[rank].size()) return false;
    const Round& round = plans[rank][rounds_done[rank]];
    Tensor& mine = tensors[rank];
    const bool sends = round.send_to != kNobody && !sent[rank];
    if (sends) {
      messages[{static_cast<int>(rank), round.send_to}].emplace_back(
          mine.begin() + round.send.begin, mine.begin() + round.send.end);
      sent[rank] = true;
    }
    if (round.receive_from != kNobody) {
      auto& queue = messages[{round.receive_from, static_cast<int>(rank)}];
      if (queue.empty()) return sends;
      const Tensor message = queue.front();
      queue.pop_front();
      EXPECT_EQ(static_cast<std::int64_t>(message.size()), round.receive.size());
      for (std::size_t i = 0; i < message.size(); ++i) {
        float& element = mine[static_cast<std::size_t>(round.receive.begin) + i];
        element = round.combine == Combine::add ? element + message[i] : message[i];
      }
    }
    ++rounds_done[rank];
    sent[rank] = false;
    return true;
  }

  /// Until nobody can go on; then everybody must be done and every message taken.
  void play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < plans.size(); ++rank) moved |= advance(rank);
    }
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      EXPECT_EQ(rounds_done[rank], plans[rank].size()) << "rank " << rank << " waits for ever";
    }
    for (const auto& [way, queue] : messages) {
      EXPECT_TRUE(queue.empty()) << "nobody takes what " << way.first << " sends " << way.second;
    }
  }
};

using MakePlan = Plan (*)(Algorithm, int rank, int size, std::int64_t elements);

World play(MakePlan plan, Algorithm algorithm, int size, std::int64_t elements) {
  std::vector<Plan> plans;
  std::vector<Tensor> tensors;
  for (int rank = 0; rank < size; ++rank) {
    plans.push_back(plan(algorithm, rank, size, elements));
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
  for (const Algorithm algorithm : kAlgorithms) {
    for (int size = 1; size <= 17; ++size) {
      for (const std::int64_t elements : {0, 1, 2, 7, 16, 1000}) {
        SCOPED_TRACE(testing::Message() << to_string(algorithm) << ' ' << size << ' ' << elements);
        const World world = play(plan_all_reduce, algorithm, size, elements);
        for (const Tensor& each : world.tensors) EXPECT_EQ(each, expected_sum(size, elements));
      }
    }
  }
}

TEST(ExchangePlan, ReduceLeavesTheSumOnRank0) {
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree}) {
    for (int size = 1; size <= 17; ++size) {
      for (const std::int64_t elements : {0, 1, 2, 7, 16, 1000}) {
        SCOPED_TRACE(testing::Message() << to_string(algorithm) << ' ' << size << ' ' << elements);
        EXPECT_EQ(play(plan_reduce, algorithm, size, elements).tensors[0],
                  expected_sum(size, elements));
      }
    }
  }
}

TEST(ExchangePlan, EveryRankHasTheSameBitsThoughAdditionRounds) {
  for (const Algorithm algorithm : kAlgorithms) {
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
    const World ring = play(plan_all_reduce, Algorithm::ring, size, elements);
    EXPECT_EQ(most_rounds(ring), static_cast<std::size_t>(2 * (size - 1)));
    EXPECT_EQ(most_sent(ring), 2 * (size - 1) * elements / size);
  }
  const World halving = play(plan_all_reduce, Algorithm::halving_doubling, 8, elements);
  EXPECT_EQ(most_rounds(halving), 6U);
  EXPECT_EQ(most_sent(halving), 2 * 7 * elements / 8);
  const World doubling = play(plan_all_reduce, Algorithm::doubling, 8, elements);
  EXPECT_EQ(most_rounds(doubling), 3U);
  EXPECT_EQ(most_sent(doubling), 3 * elements);
  EXPECT_EQ(most_rounds(play(plan_all_reduce, Algorithm::tree, 8, elements)), 6U);
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

TEST(ExchangePlan, NamesAreRead) {
  for (const Algorithm each : kAlgorithms) EXPECT_EQ(algorithm_of(to_string(each)), each);
  EXPECT_EQ(algorithm_of("rings"), std::nullopt);
}
