// SPDX-License-Identifier: MIT
// Sums over ranks, and who was the first to lose the loss.
#include "trainer/supervised/objective.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/trainer/ranks.h"

namespace dtool::trainer {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor loss(double value, int right = 0) {
  return at::tensor({value, static_cast<double>(right)}, at::kFloat);
}

TEST(LossWindow, WeighsEachLossByItsSamples) {
  on_every_rank([](const Group& group) {
    LossWindow window;
    window.add(loss(1 + group.rank, 7), 10, 1);
    window.add(loss(4, group.rank), 2, 2);
    const LossSums sums = window.take(group);
    EXPECT_EQ(sums.right, 7 * kRanks + 1 + 2);
    EXPECT_EQ(sums.samples, 12 * kRanks);
    EXPECT_EQ(sums.loss, (1 + 2 + 3) * 10 + 4 * 2 * kRanks);
    EXPECT_EQ(window.take(group).samples, 0);
  });
}

TEST(LossWindow, NamesTheFirstStepAndTheRankWhereTheLossWasLost) {
  on_every_rank([](const Group& group) {
    LossWindow window;
    window.add(loss(1), 10, 7);
    // Rank 2 loses it at step 8; a step later the averaged gradients have spoilt all ranks.
    window.add(loss(group.rank == 2 ? kNan : 1), 10, 8);
    window.add(loss(kNan), 10, 9);
    const LossSums sums = window.take(group);
    EXPECT_FALSE(std::isfinite(sums.loss));
    EXPECT_EQ(where_the_loss_was_lost(group, 5, sums),
              "the loss is no longer a number at epoch 5, step 8, on rank 2 (machine 0, " +
                  host_name() + ")");
    window.add(loss(1), 10, 10);
    EXPECT_TRUE(std::isfinite(window.take(group).loss));
  });
}

TEST(LossWindow, AnInfiniteLossIsNoNumberEither) {
  LossWindow window;
  window.add(loss(std::numeric_limits<double>::infinity()), 1, 3);
  Group alone;
  alone.members = {{0, 1, "red02", "127.0.0.1"}};
  EXPECT_EQ(where_the_loss_was_lost(alone, 1, window.take(alone)),
            "the loss is no longer a number at epoch 1, step 3, on rank 0 (machine 1, red02)");
}

}  // namespace
}  // namespace dtool::trainer
