// SPDX-License-Identifier: MIT
// ObjectNav's network with PPO's loss against PyTorch's modules and autograd.
#include "trainer/reinforcement/encoded_policy.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/trainer/random_observations.h"
#include "tests/trainer/reference.h"
#include "trainer/reinforcement/ppo_loss.h"

using namespace dtool::trainer;

namespace {

constexpr std::int64_t kSteps = 12, kRows = 6;

struct Sequences {
  at::Tensor observations = random_observations({kSteps, kRows});
  at::Tensor memory;
  at::Tensor keep = at::rand({kSteps, kRows}).gt(0.15).to(at::kFloat);

  explicit Sequences(std::int64_t hidden) : memory(0.5 * at::randn({kRows, hidden})) {}
};

EncodedPolicy policy_of(std::int64_t embedding, std::int64_t hidden) {
  return {objectnav_spec(),
          {.embedding = embedding, .memory = PolicyMemory::gru, .hidden = hidden},
          at::kCPU};
}

class ObjectNavPolicyReference : public WithReference {};

}  // namespace

TEST_F(ObjectNavPolicyReference, HasTheGradientsOfPyTorchsModules) {
  torch::manual_seed(1);
  const EncodedPolicy network = policy_of(24, 20);
  const Sequences given(20);
  const PolicyOutput output = network.unroll(given.observations, given.memory, given.keep);
  const at::Tensor actions = at::randint(kActions, {kSteps, kRows, 1}, at::kFloat);
  const TakenSteps taken{actions, at::log(at::full({kSteps, kRows}, 1.0 / 6)),
                         output.values.detach() + 0.1 * at::randn({kSteps, kRows}),
                         at::randn({kSteps, kRows}), at::randn({kSteps, kRows})};
  ppo_loss({}, {objectnav_spec().actions, output.logits}, output.values, taken,
           at::scalar_tensor(kSteps * kRows))
      .loss.backward();

  for (const auto& [name, tensor] : network.parameters()) give(name, tensor);
  give("observations", given.observations);
  give("memory", given.memory);
  give("keep", given.keep);
  give("actions", taken.actions.squeeze(-1));
  give("log_probs", taken.log_probs);
  give("old_values", taken.values);
  give("advantages", taken.advantages);
  give("returns", taken.returns);
  work_out("actor_critic");
  expect_close("new_logits", output.logits, 5e-6);
  expect_close("new_values", output.values, 5e-6);
  expect_close("new_memory", output.memory, 5e-6);
  for (const auto& [name, tensor] : network.parameters()) {
    expect_close(name + ".gradient", tensor.grad(), 5e-6);
  }
}

TEST(ObjectNavPolicy, ActsStepByStepAsItUnrolls) {
  torch::manual_seed(2);
  const EncodedPolicy network = policy_of(64, 128);
  const Sequences given(network.memory_size());
  const PolicyOutput whole = network.unroll(given.observations, given.memory, given.keep);
  at::Tensor memory = given.memory;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    const PolicyOutput step = network.act(given.observations[t], memory, given.keep[t]);
    EXPECT_TRUE(step.logits.allclose(whole.logits[t], 0, 1e-6)) << t;
    EXPECT_TRUE(step.values.allclose(whole.values[t], 0, 1e-6)) << t;
    EXPECT_FALSE(step.logits.requires_grad());
    memory = step.memory;
  }
  EXPECT_TRUE(memory.allclose(whole.memory, 0, 1e-6));
}

// A rank may have none in a mini-batch, but must take part in the exchange of its gradients.
TEST(ObjectNavPolicy, LearnsNothingFromNoSamplers) {
  const EncodedPolicy network = policy_of(64, 128);
  const PolicyOutput output =
      network.unroll(random_observations({kSteps, 0}), at::zeros({0, network.memory_size()}),
                     at::ones({kSteps, 0}));
  const at::Tensor none = at::zeros({kSteps, 0});
  const TakenSteps taken{none.unsqueeze(-1), none, none, none, none};
  ppo_loss({}, {objectnav_spec().actions, output.logits}, output.values, taken,
           at::scalar_tensor(10.0F))
      .loss.backward();
  for (const auto& [name, tensor] : network.parameters()) {
    ASSERT_TRUE(tensor.grad().defined()) << name;
    EXPECT_TRUE(tensor.grad().eq(0).all().item<bool>()) << name;
  }
}

TEST(ObjectNavPolicy, BeginsOrthogonalAndWithEveryActionLikely) {
  torch::manual_seed(3);
  const EncodedPolicy network = policy_of(32, 48);
  const auto tensor = [&](const std::string& name) {
    for (const auto& each : network.parameters()) {
      if (each.name == name) return each.tensor.detach();
    }
    throw std::logic_error("no parameter " + name);
  };
  const auto expect_orthogonal = [&](const at::Tensor& columns, double gain) {
    const at::Tensor products = columns.t().mm(columns);
    EXPECT_TRUE(products.allclose(gain * gain * at::eye(columns.size(1)), 1e-4, 1e-4 * gain * gain))
        << (products - gain * gain * at::eye(columns.size(1))).abs().max().item<float>();
  };
  expect_orthogonal(tensor("view.weight"), std::sqrt(2.0));
  expect_orthogonal(tensor("gru.input_weight").t(), 1);
  expect_orthogonal(tensor("gru.recurrent_weight").t(), 1);
  expect_orthogonal(tensor("head.weight").narrow(0, 0, kActions).t(), 0.01);
  expect_orthogonal(tensor("head.weight").narrow(0, kActions, 1).t(), 1);
  EXPECT_EQ(tensor("head.bias").abs().max().item<float>(), 0);
}

TEST(ObjectNavPolicy, IsTheSameNetworkForTheSameSeed) {
  std::vector<at::Tensor> tables;
  for (const int seed : {4, 4, 5}) {
    torch::manual_seed(seed);
    tables.push_back(policy_of(64, 128).parameters()[0].tensor);
  }
  EXPECT_TRUE(tables[0].equal(tables[1]));
  EXPECT_FALSE(tables[0].equal(tables[2]));
}

// Checkpoints have these tensors, and a seed draws them in this order.
TEST(ObjectNavPolicy, KeepsItsParameters) {
  const EncodedPolicy network = policy_of(24, 20);
  std::vector<std::string> shapes;
  for (const auto& [name, tensor] : network.parameters()) {
    shapes.push_back(fmt::format("{} {}", name, fmt::join(tensor.sizes(), "x")));
  }
  EXPECT_EQ(shapes,
            (std::vector<std::string>{"view.weight 1387x24", "gru.input_weight 24x60",
                                      "gru.recurrent_weight 20x60", "gru.input_bias 60",
                                      "gru.recurrent_bias 60", "head.weight 7x20", "head.bias 7"}));
}
