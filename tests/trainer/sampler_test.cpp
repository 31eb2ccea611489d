// SPDX-License-Identifier: MIT
#include "trainer/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

using namespace dtool::trainer;

TEST(Sampler, RanksShareNoSampleAndTogetherTakeAllButARemainder) {
  for (const int world_size : {1, 2, 3, 7}) {
    std::set<std::int64_t> seen;
    for (int rank = 0; rank < world_size; ++rank) {
      const auto order = training_order(100, rank, world_size, 5, 1);
      EXPECT_EQ(order.size(), 100u / world_size);
      for (const auto sample : order) {
        EXPECT_TRUE(seen.insert(sample).second) << "sample " << sample << " comes twice";
        EXPECT_TRUE(sample >= 0 && sample < 100);
      }
    }
    EXPECT_EQ(seen.size(), 100u / world_size * world_size);
  }
}

TEST(Sampler, TheRanksBatchesOfAStepAreTheBatchOfASingleRank) {
  const auto whole = training_order(60, 0, 1, 9, 4);
  constexpr int kBatch = 5;
  for (int step = 0; step < 60 / (3 * kBatch); ++step) {
    std::multiset<std::int64_t> together;
    for (int rank = 0; rank < 3; ++rank) {
      const auto order = training_order(60, rank, 3, 9, 4);
      together.insert(order.begin() + step * kBatch, order.begin() + (step + 1) * kBatch);
    }
    const auto begin = whole.begin() + step * 3 * kBatch;
    EXPECT_EQ(together, std::multiset<std::int64_t>(begin, begin + 3 * kBatch));
  }
}

TEST(Sampler, AnEpochOrASeedChangesTheOrderAndNothingElseDoes) {
  const auto order = training_order(1000, 0, 1, 3, 1);
  EXPECT_EQ(order, training_order(1000, 0, 1, 3, 1));
  EXPECT_NE(order, training_order(1000, 0, 1, 3, 2));
  EXPECT_NE(order, training_order(1000, 0, 1, 4, 1));
  // Neighbouring seeds must not give each other's epochs.
  EXPECT_NE(training_order(1000, 0, 1, 3, 2), training_order(1000, 0, 1, 4, 1));
}

TEST(Sampler, AnEpochGoesOnBehindItsFirstSamplesWithAnyNumberOfRanks) {
  const auto whole = training_order(100, 0, 1, 3, 1);
  for (int rank = 0; rank < 3; ++rank) {
    const auto rest = training_order(100, rank, 3, 3, 1, 20);
    ASSERT_EQ(rest.size(), 26U);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      EXPECT_EQ(rest[i], whole[20 + 3 * i + static_cast<std::size_t>(rank)]);
    }
  }
}

TEST(Sampler, AShuffleOfTwoTakesBothOrders) {
  std::set<std::vector<std::int64_t>> seen;
  for (int epoch = 0; epoch < 50; ++epoch) seen.insert(training_order(2, 0, 1, 3, epoch));
  EXPECT_EQ(seen.size(), 2U);
}

TEST(Sampler, EverySampleIsEvaluatedOnce) {
  for (const int world_size : {1, 2, 3, 7, 16}) {
    std::int64_t next = 0;
    for (int rank = 0; rank < world_size; ++rank) {
      const Range range = evaluation_range(10, rank, world_size);
      EXPECT_EQ(range.begin, next);
      next = range.end;
    }
    EXPECT_EQ(next, 10);
  }
}

TEST(Random, StaysWithinItsBoundsAndReachesThem) {
  Random random(1);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 200; ++i) {
    seen.insert(random.below(5));
    const double value = random.between(-1, 2);
    EXPECT_TRUE(value >= -1 && value < 2);
  }
  EXPECT_EQ(seen, (std::set<std::uint64_t>{0, 1, 2, 3, 4}));
}

TEST(Random, IsSplitmix64) {
  // The first values from seed 1234567, as published with the reference implementation.
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
}
