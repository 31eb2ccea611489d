// SPDX-License-Identifier: MIT
// The whole network with PPO's loss against PyTorch's modules and autograd.
#include "trainer/reinforcement/actor_critic.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/trainer/random_observations.h"
#include "tests/trainer/reference.h"
#include "trainer/reinforcement/encoded_policy.h"
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

class ActorCriticReference : public WithReference {};

}  // namespace

TEST_F(ActorCriticReference, HasTheGradientsOfPyTorchsModules) {
  torch::manual_seed(1);
  const ActorCritic network(objectnav_spec(), {.embedding = 24, .hidden = 20}, at::kCPU);
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

TEST(ActorCritic, ActsStepByStepAsItUnrolls) {
  torch::manual_seed(2);
  const ActorCritic network(objectnav_spec(), {}, at::kCPU);
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
TEST(ActorCritic, LearnsNothingFromNoSamplers) {
  const ActorCritic network(objectnav_spec(), {}, at::kCPU);
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

TEST(ActorCritic, BeginsOrthogonalAndWithEveryActionLikely) {
  torch::manual_seed(3);
  const ActorCritic network(objectnav_spec(), {.embedding = 32, .hidden = 48}, at::kCPU);
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

TEST(ActorCritic, IsTheSameNetworkForTheSameSeed) {
  std::vector<at::Tensor> tables;
  for (const int seed : {4, 4, 5}) {
    torch::manual_seed(seed);
    tables.push_back(ActorCritic(objectnav_spec(), {}, at::kCPU).parameters()[0].tensor);
  }
  EXPECT_TRUE(tables[0].equal(tables[1]));
  EXPECT_FALSE(tables[0].equal(tables[2]));
}

// Reruns and resumes of ObjectNav depend on it.
TEST(ActorCritic, IsTheEncodedPolicyOfCodesWithAGruBitForBit) {
  torch::manual_seed(4);
  const ActorCritic expected(objectnav_spec(), {.embedding = 24, .hidden = 20}, at::kCPU);
  PolicySettings settings;
  settings.memory = PolicyMemory::gru;
  settings.embedding = 24;
  settings.hidden = 20;
  torch::manual_seed(4);
  const EncodedPolicy policy(objectnav_spec(), settings, at::kCPU);
  const at::Tensor observations = random_observations({kSteps, kRows});
  const at::Tensor memory = at::randn({kRows, 20});
  const at::Tensor keep = at::rand({kSteps, kRows}).gt(0.3).to(at::kFloat);
  const PolicyOutput theirs = expected.unroll(observations, memory, keep);
  const PolicyOutput ours = policy.unroll(observations, memory, keep);
  theirs.both.square().sum().backward();
  ours.both.square().sum().backward();
  EXPECT_TRUE(ours.both.equal(theirs.both));
  for (std::size_t i = 0; i < expected.parameters().size(); ++i) {
    const auto [name, tensor] = expected.parameters()[i];
    const NamedTensor same = policy.parameters().at(i);
    EXPECT_EQ(same.name, name);
    EXPECT_TRUE(same.tensor.equal(tensor)) << name;
    EXPECT_TRUE(same.tensor.grad().equal(tensor.grad())) << name;
  }
}
