// SPDX-License-Identifier: MIT
// Advantages against the paper's sum, and against what can be said without it.
#include "trainer/reinforcement/ppo_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "tests/trainer/reference.h"

using namespace dtool::trainer;

namespace {

Experience experience(std::int64_t steps, std::int64_t samplers) {
  return {at::randn({steps, samplers}), at::randn({steps + 1, samplers}),
          at::rand({steps + 1, samplers}).gt(0.2).to(at::kFloat)};
}

class Gae : public WithReference {};

}  // namespace

TEST_F(Gae, IsThePapersSumUpToTheEndOfEachEpisode) {
  torch::manual_seed(1);
  const Experience taken = experience(40, 7);
  const Discount discount{0.99, 0.95};
  for (const std::int64_t steps : {40, 25, 1}) {  // whole, and cut short
    at::Tensor advantages = at::full({40, 7}, 1e9);
    at::Tensor returns = at::full({40, 7}, 1e9);
    estimate_advantages(taken, steps, discount, advantages, returns);
    give("rewards", taken.rewards);
    give("values", taken.values);
    give("keep", taken.keep);
    give("discount", at::tensor({discount.gamma, discount.lambda}, at::kDouble));
    give("advantages", advantages.narrow(0, 0, steps));
    work_out("advantages");
    expect_close("advantages", advantages.narrow(0, 0, steps), 1e-6);
    expect_close("returns", returns.narrow(0, 0, steps), 1e-6);
    EXPECT_TRUE(advantages.narrow(0, steps, 40 - steps).eq(1e9F).all().item<bool>());
  }
}

TEST(Advantages, AreTheErrorsOfTheCriticWhereLambdaIsZero) {
  torch::manual_seed(2);
  const Experience taken = experience(9, 4);
  at::Tensor advantages = at::empty({9, 4});
  at::Tensor returns = at::empty({9, 4});
  estimate_advantages(taken, 9, {0.9, 0}, advantages, returns);
  const at::Tensor next = taken.values.narrow(0, 1, 9) * taken.keep.narrow(0, 1, 9);
  EXPECT_TRUE(returns.allclose(taken.rewards + 0.9 * next, 1e-5, 1e-6));
  EXPECT_TRUE(advantages.allclose(returns - taken.values.narrow(0, 0, 9), 1e-5, 1e-6));
}
