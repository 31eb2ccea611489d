// SPDX-License-Identifier: MIT
// The loss and its gradients against the papers' formulas.
#include "trainer/reinforcement/ppo_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/trainer/reference.h"
#include "trainer/objectnav/house.h"

using namespace dtool::trainer;

namespace {

constexpr std::int64_t kRolloutSteps = 17, kRolloutRows = 9;
const ActionSpec kOneChoice{{kActions}, {}, {}};

/// Steps whose probabilities and values have moved, some within the clipping and some beyond.
struct Moved {
  Moved() {
    torch::manual_seed(1);
    logits = at::randn({kRolloutSteps, kRolloutRows, kActions}).requires_grad_(true);
    values = at::randn({kRolloutSteps, kRolloutRows}).requires_grad_(true);
    taken.actions = at::randint(kActions, {kRolloutSteps, kRolloutRows, 1}, at::kFloat);
    taken.log_probs = at::log_softmax(logits.detach() + 0.2 * at::randn_like(logits), -1)
                          .gather(-1, taken.actions.to(at::kLong))
                          .squeeze(-1);
    taken.values = values.detach() + 0.2 * at::randn_like(values);
    taken.advantages = at::randn_like(values).detach();
    taken.returns = at::randn_like(values).detach();
  }

  at::Tensor logits, values;
  TakenSteps taken;
};

class Ppo : public WithReference {};

}  // namespace

TEST_F(Ppo, LossAndGradientsAreThePapers) {
  const Moved moved;
  give("logits", moved.logits);
  give("values", moved.values);
  give("actions", moved.taken.actions.squeeze(-1));
  give("log_probs", moved.taken.log_probs);
  give("old_values", moved.taken.values);
  give("advantages", moved.taken.advantages);
  give("returns", moved.taken.returns);
  work_out("loss");
  for (const bool clipped : {true, false}) {
    PpoSettings settings;
    settings.use_clipped_value_loss = clipped;
    moved.logits.mutable_grad().reset();
    moved.values.mutable_grad().reset();
    const PpoLoss found = ppo_loss(settings, {kOneChoice, moved.logits}, moved.values, moved.taken,
                                   at::scalar_tensor(kRolloutSteps * kRolloutRows));
    found.loss.backward();
    const std::string name = clipped ? "clipped" : "unclipped";
    expect_close(name + ".loss", found.loss, 1e-6);
    expect_close(name + ".sums", found.sums, 1e-6);
    expect_close(name + ".logits.gradient", moved.logits.grad(), 1e-6);
    expect_close(name + ".values.gradient", moved.values.grad(), 1e-6);
    const double share = sums_of(found.sums).clipped / (kRolloutSteps * kRolloutRows);
    EXPECT_GT(share, 0.1);
    EXPECT_LT(share, 0.9);
  }
}

TEST(PpoLoss, OfTwoRanksAveragesToThatOfOneThoughOneWasCutShort) {
  const Moved moved;
  const PpoSettings settings;
  const auto gradient_of = [&](std::int64_t begin, std::int64_t rows, double steps) {
    const auto part = [&](const at::Tensor& whole) { return whole.narrow(0, begin, rows); };
    moved.logits.mutable_grad().reset();
    ppo_loss(settings, {kOneChoice, part(moved.logits)}, part(moved.values),
             {part(moved.taken.actions), part(moved.taken.log_probs), part(moved.taken.values),
              part(moved.taken.advantages), part(moved.taken.returns)},
             at::scalar_tensor(steps))
        .loss.backward();
    return moved.logits.grad().clone();
  };
  const at::Tensor whole = gradient_of(0, kRolloutSteps, kRolloutSteps * kRolloutRows);
  const double divisor = kRolloutSteps * kRolloutRows / 2.0;
  const at::Tensor first = gradient_of(0, 5, divisor);
  const at::Tensor second = gradient_of(5, kRolloutSteps - 5, divisor);
  EXPECT_TRUE(((first + second) / 2).allclose(whole, 1e-5, 1e-8));
}
