// SPDX-License-Identifier: MIT
// What rewards are divided by, against NumPy's deviation of all discounted returns so far.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <mutex>
#include <vector>

#include "tests/trainer/ranks.h"
#include "tests/trainer/reference.h"
#include "trainer/reinforcement/encoded_policy.h"
#include "trainer/reinforcement/rollout.h"

using namespace dtool::trainer;

namespace {

constexpr std::int64_t kSteps = 12, kSamplers = 6;

const EnvironmentSpec kSpec = {{{"place", {1}, ObservedKind::codes, 3}}, {{2}, {}, {}}, {"reward"}};

/// Three rollouts, the second of which was cut short, of the samplers [first, first + count).
std::vector<Rollout> rollouts(std::int64_t first = 0, std::int64_t count = kSamplers) {
  torch::manual_seed(4);
  const EncodedPolicy policy(kSpec, {}, at::kCPU);
  std::vector<Rollout> all;
  for (int i = 0; i < 3; ++i) {
    const at::Tensor rewards = 50 * at::randn({kSteps, kSamplers}) - 20;
    const at::Tensor keep = at::rand({kSteps + 1, kSamplers}).gt(0.2).to(at::kFloat);
    Rollout& each = all.emplace_back(kSteps, count, policy);
    each.rewards.copy_(rewards.narrow(1, first, count));
    each.keep.copy_(keep.narrow(1, first, count));
    each.last_values.fill_(3);
    each.steps = i == 1 ? 5 : kSteps;
  }
  return all;
}

at::Tensor steps_of(const at::Tensor& values, const Rollout& rollout) {
  return values.narrow(0, 0, rollout.steps);
}

class ReturnScaleReference : public WithReference {};

}  // namespace

TEST_F(ReturnScaleReference, IsTheDeviationOfAllDiscountedReturnsSoFar) {
  std::vector<Rollout> all = rollouts();
  ReturnScale scale(kSamplers, 0.9);
  std::vector<at::Tensor> rewards, keep, scaled;
  for (Rollout& each : all) {
    rewards.push_back(steps_of(each.rewards, each).clone());
    keep.push_back(steps_of(each.keep, each));
    scale.apply(each, Group());
    scaled.push_back(steps_of(each.rewards, each));
    EXPECT_TRUE(each.last_values.eq(3).all().item<bool>()) << "values are scaled already";
  }
  give("rewards", at::cat(rewards));
  give("keep", at::cat(keep));
  give("ends", at::tensor({kSteps, kSteps + 5, 2 * kSteps + 5}));
  give("gamma", at::tensor(0.9, at::kDouble));
  work_out("scaled_rewards");
  expect_close("scaled", at::cat(scaled), 1e-6);
}

TEST(ReturnScale, OfRanksIsThatOfOneWithAllSamplers) {
  std::vector<Rollout> all = rollouts();
  ReturnScale whole(kSamplers, 0.9);
  for (Rollout& each : all) whole.apply(each, Group());
  on_every_rank([&](const Group& group) {
    const std::int64_t first = 2 * group.rank;
    static std::mutex drawing;  // the generator is the process's
    std::unique_lock lock(drawing);
    std::vector<Rollout> mine = rollouts(first, 2);
    lock.unlock();
    ReturnScale scale(2, 0.9);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      scale.apply(mine[i], group);
      EXPECT_TRUE(mine[i].rewards.allclose(all[i].rewards.narrow(1, first, 2), 1e-6));
    }
    EXPECT_TRUE(scale.returns().allclose(whole.returns().narrow(0, first, 2)));
  });
}

TEST(ReturnScale, GoesOnFromACheckpointByTheSamplersNumbers) {
  std::vector<Rollout> went_on = rollouts();
  std::vector<Rollout> resumed = rollouts(4, 2);
  ReturnScale scale(kSamplers, 0.9);
  for (int i = 0; i < 2; ++i) scale.apply(went_on[static_cast<std::size_t>(i)], Group());
  std::vector<NamedTensor> kept;
  for (const NamedTensor& each : scale.statistics())
    kept.push_back({each.name, each.tensor.clone()});
  kept.push_back({"returns.now", scale.returns().clone()});
  ReturnScale later(2, 0.9);
  later.restore(kept, {4, 2});
  EXPECT_TRUE(later.returns().equal(scale.returns().narrow(0, 4, 2)));
  ReturnScale again(kSamplers, 0.9);
  again.restore(kept, {0, kSamplers});
  std::vector<Rollout> third = rollouts();
  scale.apply(went_on[2], Group());
  again.apply(third[2], Group());
  EXPECT_TRUE(third[2].rewards.equal(went_on[2].rewards));
  ReturnScale another(kSamplers, 0.9);
  another.restore({{"returns.now", at::zeros({0}, at::kDouble)}, {"returns.mean", at::ones({7})}},
                  {0, kSamplers});
  EXPECT_TRUE(another.statistics()[1].tensor.eq(0).all().item<bool>()) << "of another size";
}

TEST(ReturnScale, KeepsEqualAndRareRewardsWithinBounds) {
  const EncodedPolicy policy(kSpec, {}, at::kCPU);
  Rollout rollout(4, 2, policy);
  rollout.steps = 4;
  ReturnScale scale(2, 0.9);
  scale.apply(rollout, Group());
  EXPECT_TRUE(rollout.rewards.eq(0).all().item<bool>());
  rollout.rewards.fill_(1e9F);
  rollout.rewards[0].fill_(-1e-9F);
  scale.apply(rollout, Group());
  EXPECT_TRUE(rollout.rewards.isfinite().all().item<bool>());
  rollout.rewards.zero_();
  rollout.rewards[3][1].fill_(1e30F);
  ReturnScale rare(2, 0);
  rare.apply(rollout, Group());
  EXPECT_NEAR(rollout.rewards[3][1].item<double>(), 8 / std::sqrt(7.), 1e-5);
  rollout.rewards.fill_(5);
  ReturnScale equal(2, 0);
  equal.apply(rollout, Group());
  EXPECT_TRUE(rollout.rewards.eq(10).all().item<bool>()) << "no further from 0 than 10";
}
