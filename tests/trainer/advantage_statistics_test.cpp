// SPDX-License-Identifier: MIT
// Statistics over ranks are those of one rank with all experience.
#include "trainer/reinforcement/ppo_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <vector>

using namespace dtool::trainer;

TEST(AdvantageStatistics, OfPartsAreThoseOfTheWholeThoughOneWasCutShort) {
  torch::manual_seed(1);
  const at::Tensor whole = 3 * at::randn({40, 6}) + 5;
  const at::Tensor first = whole.narrow(0, 0, 9);
  const at::Tensor second = whole.narrow(0, 9, 31);
  std::vector<double> sums = advantage_sums(first);
  const auto others = advantage_sums(second);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += others[i];
  const AdvantageStatistics found = statistics_of(sums);
  EXPECT_EQ(found.count, 240);
  EXPECT_NEAR(found.mean, whole.mean().item<double>(), 1e-5);
  EXPECT_NEAR(found.standard_deviation, whole.std(/*unbiased=*/false).item<double>(), 1e-5);
  EXPECT_GT(found.standard_deviation, 2);
}

TEST(AdvantageStatistics, NormaliseInPlace) {
  torch::manual_seed(2);
  at::Tensor advantages = 2 * at::randn({50, 4}) - 7;
  normalise_advantages(statistics_of(advantage_sums(advantages)), advantages);
  EXPECT_NEAR(advantages.mean().item<double>(), 0, 1e-5);
  EXPECT_NEAR(advantages.std(/*unbiased=*/false).item<double>(), 1, 1e-4);
}

TEST(AdvantageStatistics, LeaveEqualAdvantagesAtZero) {
  at::Tensor advantages = at::full({3, 3}, 0.1F);
  normalise_advantages(statistics_of(advantage_sums(advantages)), advantages);
  EXPECT_LT(advantages.abs().max().item<float>(), 1e-2);
}

TEST(AdvantageStatistics, AreThoseOfFourNumbersByHand) {
  const auto sums = advantage_sums(at::tensor({1., 2., 3., 4.}, at::kFloat));
  EXPECT_EQ(sums, (std::vector<double>{4, 10, 30}));
  EXPECT_EQ(statistics_of(sums).mean, 2.5);
  EXPECT_DOUBLE_EQ(statistics_of(sums).standard_deviation, std::sqrt(1.25));
  EXPECT_EQ(statistics_of({1, 0.1, 0.01 - 1e-18}).standard_deviation, 0) << "rounding";
  at::Tensor one = at::ones({1}, at::kDouble);
  normalise_advantages({1, 0, 0}, one);
  EXPECT_DOUBLE_EQ(one.item<double>(), 1e5);
}
