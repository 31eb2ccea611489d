// SPDX-License-Identifier: MIT
// Actions are drawn as often as their distribution says, and alike on any number of ranks.
#include "trainer/reinforcement/actions.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

using namespace dtool::trainer;

namespace {

const ActionSpec kSix{{6}, {}, {}};
const ActionSpec kSeveral{{3, 2, 5}, {}, {}};
const ActionSpec kBox{{}, {-1, -1}, {1, 1}};

struct Drawn {
  at::Tensor actions;
  at::Tensor log_probs;
};

Drawn draw(const ActionSpec& spec, const at::Tensor& parameters, std::uint64_t seed,
           std::int64_t first, std::int64_t step) {
  Drawn drawn{at::zeros({parameters.size(0), spec.values()}), at::zeros({parameters.size(0)})};
  sample_actions(parameters, spec, seed, first, step, drawn.actions.data_ptr<float>(),
                 drawn.log_probs.data_ptr<float>());
  return drawn;
}

/// The chi-square distance between how often 0, 1, .. were drawn and the probabilities.
double chi_square(const at::Tensor& drawn, const at::Tensor& probabilities) {
  const at::Tensor counts =
      at::bincount(drawn.flatten().to(at::kLong), {}, probabilities.numel()).to(at::kDouble);
  const at::Tensor expected = probabilities.to(at::kDouble) * drawn.numel();
  return ((counts - expected).square() / expected).sum().item<double>();
}

}  // namespace

TEST(SampleActions, DrawsEachAsOftenAsItIsLikely) {
  const at::Tensor row = at::tensor({0.0F, 1.0F, -1.0F, 2.0F, 0.5F, -3.0F});
  const Drawn drawn = draw(kSix, row.expand({200'000, 6}), 1, 0, 0);
  EXPECT_LT(chi_square(drawn.actions, at::softmax(row, 0)), 20.5);  // 1 in 1000; the seed is fixed
  const at::Tensor expected =
      ActionDistribution(kSix, row.expand({6, 6})).log_probs(at::arange(6).unsqueeze(1));
  EXPECT_TRUE(drawn.log_probs.allclose(
      expected.index_select(0, drawn.actions.flatten().to(at::kLong)), 0, 1e-5));
}

TEST(SampleActions, DrawsSeveralChoicesIndependently) {
  const at::Tensor row = at::tensor({0.0F, 1.0F, -1.0F, 0.3F, 0.0F, 0.0F, 0.1F, 0.2F, 0.3F, 0.4F});
  const Drawn drawn = draw(kSeveral, row.expand({200'000, 10}), 1, 0, 0);
  const at::Tensor first = at::softmax(row.narrow(0, 0, 3), 0);
  const at::Tensor second = at::softmax(row.narrow(0, 3, 2), 0);
  const at::Tensor third = at::softmax(row.narrow(0, 5, 5), 0);
  // Together the values are one number from 0 to 29.
  const at::Tensor together =
      drawn.actions.select(1, 0) * 10 + drawn.actions.select(1, 1) * 5 + drawn.actions.select(1, 2);
  const at::Tensor likely =
      (first.view({3, 1, 1}) * second.view({1, 2, 1}) * third.view({1, 1, 5})).flatten();
  EXPECT_LT(chi_square(together, likely), 58.3);  // 1 in 1000 with 29 degrees of freedom
  EXPECT_TRUE(
      drawn.log_probs.allclose(likely.log().index_select(0, together.to(at::kLong)), 0, 1e-5));
}

TEST(SampleActions, DrawsNumbersOfABoxAroundTheirMeans) {
  const at::Tensor row = at::tensor({2.0F, -1.0F, std::log(0.5F), std::log(3.0F)});
  const Drawn drawn = draw(kBox, row.expand({100'000, 4}), 2, 0, 7);
  const at::Tensor noise =
      (drawn.actions - row.narrow(0, 0, 2)) / row.narrow(0, 2, 2).exp();  // standard Gaussians
  EXPECT_LT(noise.mean(0).abs().max().item<double>(), 0.012);
  EXPECT_LT((noise.square().mean(0) - 1).abs().max().item<double>(), 0.018);
  EXPECT_LT((noise.select(1, 0) * noise.select(1, 1)).mean().abs().item<double>(), 0.012);
  const double beyond_two = noise.abs().gt(2).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(beyond_two, std::erfc(std::numbers::sqrt2), 0.002);
  EXPECT_TRUE(
      drawn.log_probs.allclose(ActionDistribution(kBox, row).log_probs(drawn.actions), 1e-5, 1e-5));
}

TEST(SampleActions, OfTwoRanksAreThoseOfOneWithAllSamplers) {
  torch::manual_seed(1);
  for (const ActionSpec& spec : {kSix, kSeveral, kBox}) {
    const at::Tensor parameters = at::randn({60, spec.parameters()});
    const Drawn whole = draw(spec, parameters, 3, 0, 5);
    const Drawn second = draw(spec, parameters.narrow(0, 30, 30), 3, 30, 5);
    EXPECT_TRUE(second.actions.equal(whole.actions.narrow(0, 30, 30)));
    EXPECT_TRUE(second.log_probs.equal(whole.log_probs.narrow(0, 30, 30)));
    EXPECT_FALSE(draw(spec, parameters, 3, 0, 6).actions.equal(whole.actions));
    EXPECT_FALSE(draw(spec, parameters, 4, 0, 5).actions.equal(whole.actions));
  }
}

TEST(SampleActions, NeverTakesAnImpossibleOne) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const at::Tensor row = at::tensor({kNever, 0.0F, kNever, 0.0F, kNever, kNever});
  const at::Tensor actions = draw(kSix, row.expand({2000, 6}), 1, 0, 0).actions;
  EXPECT_TRUE(actions.eq(1).logical_or(actions.eq(3)).all().item<bool>());
}

// These are the numbers of the runs before actions could be anything else: their reruns and resumes
// depend on them.
TEST(SampleActions, DrawsTheSameForEver) {
  const at::Tensor row = at::tensor({0.0F, 1.0F, -1.0F, 2.0F, 0.5F, -3.0F});
  const Drawn drawn = draw(kSix, row.expand({12, 6}), 9, 100, 3);
  const at::Tensor expected =
      at::tensor({0.0F, 3.0F, 3.0F, 3.0F, 4.0F, 3.0F, 1.0F, 3.0F, 1.0F, 3.0F, 3.0F, 3.0F});
  EXPECT_TRUE(drawn.actions.flatten().equal(expected)) << drawn.actions.flatten();
  EXPECT_EQ(drawn.log_probs[0].item<float>(), -0x1.4a0342p+1F);
  EXPECT_EQ(drawn.log_probs[1].item<float>(), -0x1.280d06p-1F);
}

TEST(ActionDistribution, OfOneChoiceIsLogSoftmaxBitForBit) {
  torch::manual_seed(2);
  const at::Tensor logits = at::randn({7, 9, 6}).requires_grad_(true);
  const at::Tensor plain = logits.detach().clone().requires_grad_(true);
  const at::Tensor actions = at::randint(6, {7, 9, 1});
  const at::Tensor weights = at::randn({7, 9});

  const ActionDistribution distribution(kSix, logits);
  const at::Tensor ours = distribution.log_probs(actions.to(at::kFloat));
  ((ours * weights).sum() - 0.01 * distribution.entropies().sum()).backward();

  const at::Tensor log_probs = at::log_softmax(plain, -1);
  const at::Tensor expected = log_probs.gather(-1, actions).squeeze(-1);
  const at::Tensor disorder = -(log_probs.exp() * log_probs).sum();
  ((expected * weights).sum() - 0.01 * disorder).backward();
  EXPECT_TRUE(ours.equal(expected));
  EXPECT_TRUE(logits.grad().equal(plain.grad()));
}

TEST(ActionDistribution, OfABoxIsItsDensityAndEntropy) {
  torch::manual_seed(3);
  const at::Tensor parameters = at::randn({5, 4}, at::kDouble).requires_grad_(true);
  const at::Tensor actions = at::randn({5, 2}, at::kDouble);
  const ActionDistribution distribution(kBox, parameters);
  const at::Tensor means = parameters.narrow(1, 0, 2);
  const at::Tensor variances = (2 * parameters.narrow(1, 2, 2)).exp();
  const at::Tensor density = ((-(actions - means).square() / (2 * variances)).exp() /
                              (2 * std::numbers::pi * variances).sqrt())
                                 .prod(1);
  EXPECT_TRUE(distribution.log_probs(actions).allclose(density.log(), 1e-9, 1e-9));
  const at::Tensor entropy = (0.5 * (2 * std::numbers::pi * std::numbers::e * variances).log());
  EXPECT_TRUE(distribution.entropies().allclose(entropy.sum(1), 1e-9, 1e-9));
  const auto gradient = [&](const at::Tensor& value) {
    parameters.mutable_grad().reset();
    value.backward({}, /*retain_graph=*/true);
    return parameters.grad().clone();
  };
  EXPECT_TRUE(gradient(distribution.log_probs(actions).sum())
                  .allclose(gradient(density.log().sum()), 1e-9, 1e-9));
  EXPECT_TRUE(
      gradient(distribution.entropies().sum()).allclose(gradient(entropy.sum()), 1e-9, 1e-9));
}

TEST(ActionDistribution, OfSeveralChoicesAddsThemUp) {
  torch::manual_seed(4);
  const at::Tensor logits = at::randn({8, 10});
  const at::Tensor actions =
      at::stack({at::randint(3, {8}), at::randint(2, {8}), at::randint(5, {8})}, 1);
  const ActionDistribution distribution(kSeveral, logits);
  at::Tensor log_probs = at::zeros({8}), entropies = at::zeros({8});
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto count = kSeveral.choices[static_cast<std::size_t>(i)];
    const ActionDistribution alone({{count}, {}, {}}, logits.narrow(1, first, count));
    log_probs += alone.log_probs(actions.narrow(1, i, 1));
    entropies += alone.entropies();
    first += count;
  }
  EXPECT_TRUE(distribution.log_probs(actions).allclose(log_probs, 0, 1e-6));
  EXPECT_TRUE(distribution.entropies().allclose(entropies, 0, 1e-6));
}
