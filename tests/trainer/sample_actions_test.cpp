// SPDX-License-Identifier: MIT
// Actions are drawn as often as the policy says, and alike on any number of ranks.
#include "trainer/reinforcement/policy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <vector>

#include "trainer/objectnav/house.h"

using namespace dtool::trainer;

namespace {

struct Drawn {
  std::vector<float> actions;
  std::vector<float> log_probs;
};

Drawn draw(const at::Tensor& logits, std::uint64_t seed, std::int64_t first, std::int64_t step) {
  const auto size = static_cast<std::size_t>(logits.size(0));
  Drawn drawn{std::vector<float>(size), std::vector<float>(size)};
  sample_actions(logits, seed, first, step, drawn.actions.data(), drawn.log_probs.data());
  return drawn;
}

}  // namespace

TEST(SampleActions, DrawsEachAsOftenAsItIsLikely) {
  const at::Tensor row = at::tensor({0.0F, 1.0F, -1.0F, 2.0F, 0.5F, -3.0F});
  const at::Tensor probabilities = at::softmax(row, 0);
  std::vector<double> counts(kActions);
  constexpr int kSamplers = 500, kSteps = 400;
  const at::Tensor logits = row.expand({kSamplers, kActions});
  for (int step = 0; step < kSteps; ++step) {
    const Drawn drawn = draw(logits, 1, 0, step);
    for (std::size_t i = 0; i < kSamplers; ++i) {
      const auto action = static_cast<std::size_t>(drawn.actions[i]);
      ++counts[action];
      ASSERT_NEAR(drawn.log_probs[i],
                  std::log(probabilities[static_cast<std::int64_t>(action)].item<double>()), 1e-5);
    }
  }
  double chi_square = 0;
  for (std::size_t i = 0; i < kActions; ++i) {
    const double expected =
        probabilities[static_cast<std::int64_t>(i)].item<double>() * kSamplers * kSteps;
    chi_square += std::pow(counts[i] - expected, 2) / expected;
  }
  EXPECT_LT(chi_square, 20.5);  // 1 in 1000 with 5 degrees of freedom; the seed is fixed
}

TEST(SampleActions, OfTwoRanksAreThoseOfOneWithAllSamplers) {
  torch::manual_seed(1);
  const at::Tensor logits = at::randn({60, kActions});
  const Drawn whole = draw(logits, 3, 0, 5);
  const Drawn second = draw(logits.narrow(0, 30, 30), 3, 30, 5);
  EXPECT_TRUE(std::equal(second.actions.begin(), second.actions.end(), whole.actions.begin() + 30));
  EXPECT_TRUE(
      std::equal(second.log_probs.begin(), second.log_probs.end(), whole.log_probs.begin() + 30));
  EXPECT_NE(draw(logits, 3, 0, 6).actions, whole.actions);
  EXPECT_NE(draw(logits, 4, 0, 5).actions, whole.actions);
}

TEST(SampleActions, NeverTakesAnImpossibleOne) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const at::Tensor logits =
      at::tensor({kNever, 0.0F, kNever, 0.0F, kNever, kNever}).expand({2000, kActions});
  for (const auto action : draw(logits, 1, 0, 0).actions) EXPECT_TRUE(action == 1 || action == 3);
}
