// SPDX-License-Identifier: MIT
// Policies for every kind of observation and action, with each memory.
#include "trainer/reinforcement/encoded_policy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/trainer/experiment_text.h"
#include "tests/trainer/ranks.h"
#include "tests/trainer/reference.h"
#include "trainer/reinforcement/actions.h"
#include "trainer/reinforcement/ppo_loss.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/optimizer.h"

using namespace dtool::trainer;

namespace {

constexpr std::int64_t kLength = 5, kSamplers = 3;

const Observed kNumbers{"place", {2, 2}, ObservedKind::numbers, 0};
const Observed kCodes{"goal", {3}, ObservedKind::codes, 7};
const Observed kPicture{"image", {4, 40, 36}, ObservedKind::pixels, 0};
const ActionSpec kChoice{{4}, {}, {}};
const ActionSpec kBox{{}, {-1, -1, -1}, {1, 1, 1}};

/// uint8 [shape.., observation_bytes].
at::Tensor observations_of(const EnvironmentSpec& spec, const std::vector<std::int64_t>& shape) {
  std::vector<at::Tensor> parts;
  for (const Observed& each : spec.observations) {
    auto size = shape;
    size.push_back(each.values());
    if (each.kind == ObservedKind::numbers) {
      parts.push_back(at::randn(size).view(at::kByte));
    } else {
      const std::int64_t codes = each.kind == ObservedKind::codes ? each.codes : 256;
      parts.push_back(at::randint(codes, size, at::kByte));
    }
  }
  return at::cat(parts, -1);
}

at::Tensor parameter(const Policy& policy, const std::string& name) {
  for (const auto& each : policy.parameters()) {
    if (each.name == name) return each.tensor;
  }
  throw std::logic_error("no parameter " + name);
}

std::vector<std::string> names_in(const Policy& policy) {
  std::vector<std::string> names;
  for (const auto& each : policy.parameters()) names.push_back(each.name);
  return names;
}

std::vector<PolicySettings> all_settings() {
  std::vector<PolicySettings> all;
  for (const PolicyMemory memory : {PolicyMemory::none, PolicyMemory::gru, PolicyMemory::lstm}) {
    PolicySettings settings;
    settings.encoder = "nature_half";
    settings.hidden = 24;
    settings.memory = memory;
    all.push_back(settings);
  }
  all.push_back(all[0]);
  all.back().separate_critic = true;
  all.back().normalise_observations = true;
  return all;
}

class EncodedPolicyReference : public WithReference {};

}  // namespace

TEST(EncodedPolicy, ActsStepByStepAsItUnrolls) {
  for (const ActionSpec& actions : {kChoice, kBox}) {
    const EnvironmentSpec spec{{kCodes, kNumbers, kPicture}, actions, {"reward"}};
    for (const PolicySettings& settings : all_settings()) {
      torch::manual_seed(1);
      EncodedPolicy policy(spec, settings, at::kCPU);
      const at::Tensor observations = observations_of(spec, {kLength, kSamplers});
      policy.update_statistics(observations, {});
      const at::Tensor keep = at::rand({kLength, kSamplers}).gt(0.3).to(at::kFloat);
      at::Tensor memory = 0.5 * at::randn({kSamplers, policy.memory_size()});
      const PolicyOutput whole = policy.unroll(observations, memory, keep);
      EXPECT_EQ(whole.both.sizes(),
                (std::vector<std::int64_t>{kLength, kSamplers, actions.parameters() + 1}));
      EXPECT_TRUE(whole.both.narrow(-1, 0, actions.parameters()).equal(whole.logits));
      EXPECT_TRUE(whole.both.select(-1, actions.parameters()).equal(whole.values));
      for (std::int64_t t = 0; t < kLength; ++t) {
        const PolicyOutput step = policy.act(observations[t], memory, keep[t]);
        EXPECT_TRUE(step.both.allclose(whole.both[t], 1e-4, 1e-6)) << t;
        EXPECT_FALSE(step.both.requires_grad());
        memory = step.memory;
      }
      EXPECT_TRUE(memory.allclose(whole.memory, 1e-4, 1e-6));
    }
  }
}

// Every parameter must take part, and a rank may have no samplers in a mini-batch.
TEST(EncodedPolicy, EveryParameterHasAGradient) {
  for (const ActionSpec& actions : {kChoice, kBox}) {
    const EnvironmentSpec spec{{kCodes, kNumbers, kPicture}, actions, {"reward"}};
    for (const PolicySettings& settings : all_settings()) {
      for (const std::int64_t rows : {kSamplers, std::int64_t{0}}) {
        EncodedPolicy policy(spec, settings, at::kCPU);
        const PolicyOutput output =
            policy.unroll(observations_of(spec, {kLength, rows}),
                          at::zeros({rows, policy.memory_size()}), at::ones({kLength, rows}));
        const at::Tensor taken = at::ones({kLength, rows, actions.values()});
        const ActionDistribution distribution(actions, output.logits);
        (distribution.log_probs(taken).sum() + output.values.square().sum()).backward();
        for (const auto& [name, tensor] : policy.parameters()) {
          ASSERT_TRUE(tensor.grad().defined()) << name;
          EXPECT_EQ(tensor.grad().ne(0).any().item<bool>(), rows > 0) << name;
        }
      }
    }
  }
}

TEST(EncodedPolicy, ReadsTheNumbersAndPixelsOfItsParts) {
  const EnvironmentSpec spec{{kCodes, kNumbers}, kChoice, {"reward"}};
  PolicySettings settings;
  settings.layers = {};
  const EncodedPolicy policy(spec, settings, at::kCPU);
  const at::Tensor numbers = at::tensor({1.5F, -2.0F, 1e-3F, 4e6F});
  const at::Tensor row = at::cat({at::zeros({3}, at::kByte), numbers.view(at::kByte)});
  EXPECT_TRUE(numbers_in(spec, row.unsqueeze(0)).equal(numbers.unsqueeze(0)));
  EXPECT_TRUE(numbers_in(spec, at::stack({row, row}).narrow(0, 1, 1)).equal(numbers.unsqueeze(0)));
}

TEST(EncodedPolicy, TheCriticOfItsOwnSharesNothing) {
  PolicySettings settings;
  settings.separate_critic = true;
  const EnvironmentSpec spec{{kNumbers}, kChoice, {"reward"}};
  const EncodedPolicy policy(spec, settings, at::kCPU);
  EXPECT_EQ(names_in(policy),
            (std::vector<std::string>{
                "numbers.fc1.weight", "numbers.fc1.bias", "numbers.fc2.weight", "numbers.fc2.bias",
                "critic.numbers.fc1.weight", "critic.numbers.fc1.bias", "critic.numbers.fc2.weight",
                "critic.numbers.fc2.bias", "head.weight", "head.bias", "critic.head.weight",
                "critic.head.bias"}));
  policy
      .unroll(observations_of(spec, {kLength, kSamplers}), at::zeros({kSamplers, 0}),
              at::ones({kLength, kSamplers}))
      .values.sum()
      .backward();
  EXPECT_FALSE(parameter(policy, "numbers.fc1.weight").grad().ne(0).any().item<bool>());
  EXPECT_TRUE(parameter(policy, "critic.numbers.fc1.weight").grad().ne(0).any().item<bool>());
}

TEST(EncodedPolicy, BeginsOrthogonalAndWithEveryActionLikely) {
  torch::manual_seed(3);
  const EnvironmentSpec spec{{kNumbers, kPicture}, kBox, {"reward"}};
  const EncodedPolicy policy(spec, {}, at::kCPU);
  const auto expect_orthogonal = [&](const std::string& name, double gain) {
    at::Tensor matrix = parameter(policy, name).detach().flatten(1);
    if (name == "head.weight") matrix = matrix.narrow(0, 0, 3);
    if (matrix.size(0) > matrix.size(1)) matrix = matrix.t();
    const at::Tensor products = matrix.mm(matrix.t()) / (gain * gain);
    EXPECT_TRUE(products.allclose(at::eye(matrix.size(0)), 1e-4, 1e-4)) << name;
  };
  expect_orthogonal("numbers.fc2.weight", std::sqrt(2.0));
  expect_orthogonal("encoder.conv1.weight", std::sqrt(2.0));
  expect_orthogonal("encoder.fc1.weight", std::sqrt(2.0));
  expect_orthogonal("head.weight", 0.01);
  EXPECT_TRUE(parameter(policy, "encoder.conv3.bias").eq(0).all().item<bool>());
  EXPECT_TRUE(parameter(policy, "head.log_deviations").eq(0).all().item<bool>());
}

TEST(EncodedPolicy, APictureThatIsTooSmallIsRefusedWithWhatFits) {
  const EnvironmentSpec spec{{{"image", {3, 7, 7}, ObservedKind::pixels, 0}}, kChoice, {"reward"}};
  EXPECT_EQ(
      mistake_of([&] { EncodedPolicy(spec, {}, at::kCPU); }),
      "the observation image has pictures of 7 x 7 pixels, but model.encoder \"nature\" needs "
      "at least 36 x 36 / one that fits: \"impala\", \"resnet18\", \"resnet18_half\", "
      "\"small\"");
  const EnvironmentSpec flat{{{"image", {49}, ObservedKind::pixels, 0}}, kChoice, {"reward"}};
  EXPECT_EQ(mistake_of([&] { EncodedPolicy(flat, {}, at::kCPU); }),
            "the observation image has pixels of shape [49], not of a picture: [channels, rows, "
            "columns] / ");
}

// On CPUs pictures are looked at some at a time.
TEST(EncodedPolicy, EveryEncoderSeesTheSameInAnyBatch) {
  const EnvironmentSpec spec{{kPicture}, kChoice, {"reward"}};
  for (const std::string name :
       {"nature", "nature_half", "impala", "resnet18", "resnet18_half", "small"}) {
    torch::manual_seed(6);
    PolicySettings settings;
    settings.encoder = name;
    const EncodedPolicy policy(spec, settings, at::kCPU);
    const at::Tensor observations = observations_of(spec, {70});
    const auto values = [&](const at::Tensor& some) {
      return policy.act(some, at::zeros({some.size(0), 0}), at::ones({some.size(0)})).values;
    };
    const at::Tensor whole = values(observations);
    EXPECT_TRUE(
        whole.narrow(0, 60, 10).allclose(values(observations.narrow(0, 60, 10)), 1e-3, 1e-4))
        << name;
    EXPECT_GT(whole.std().item<float>(), 1e-3) << name;
  }
}

TEST(EncodedPolicy, EncodesInBfloat16WhatItHasLearnedInFloat32) {
  const EnvironmentSpec spec{{kCodes, kNumbers, kPicture}, kBox, {"reward"}};
  for (const std::string name : {"nature", "impala", "resnet18_half", "small"}) {
    PolicySettings settings;
    settings.encoder = name;
    settings.memory = PolicyMemory::gru;
    torch::manual_seed(10);
    const EncodedPolicy whole(spec, settings, at::kCPU);
    settings.precision = Precision::bfloat16;
    torch::manual_seed(10);
    const EncodedPolicy low(spec, settings, at::kCPU);
    const at::Tensor observations = observations_of(spec, {2, 40});
    const auto seen_by = [&](const EncodedPolicy& policy) {
      return policy.unroll(observations, at::zeros({40, policy.memory_size()}), at::ones({2, 40}));
    };
    const PolicyOutput expected = seen_by(whole), found = seen_by(low);
    EXPECT_EQ(found.both.scalar_type(), at::kFloat);
    EXPECT_EQ(found.memory.scalar_type(), at::kFloat);
    EXPECT_FALSE(found.values.allclose(expected.values, 1e-4, 1e-5)) << name << " is not lower";
    const double largest = expected.memory.abs().max().item<double>();
    EXPECT_TRUE(found.memory.allclose(expected.memory, 0, 0.1 * largest)) << name;
    found.values.sum().backward();
    expected.values.sum().backward();
    for (const auto& [each, tensor] : low.parameters()) {
      EXPECT_EQ(tensor.scalar_type(), at::kFloat) << each;
      const at::Tensor mine = tensor.grad();
      const at::Tensor its = parameter(whole, each).grad();
      ASSERT_EQ(mine.defined(), its.defined()) << each;
      if (!mine.defined() || its.eq(0).all().item<bool>()) continue;
      EXPECT_EQ(mine.scalar_type(), at::kFloat) << each;
      const double cosine =
          (mine * its).sum().item<double>() / (mine.norm() * its.norm()).item<double>();
      EXPECT_GT(cosine, 0.8) << name << " " << each;
    }
    const at::Tensor acted =
        low.act(observations[0], at::zeros({40, low.memory_size()}), at::ones({40})).values;
    EXPECT_TRUE(acted.allclose(found.values[0], 2e-2, 2e-2)) << name;
  }
}

// Every network against PyTorch's modules in double precision: forward, loss, gradients, a step of
// Adam. In float32 a value close to 0 may be on the other side of a ReLU, which the gradients of
// few pictures show, most of all in a deep network.
TEST_F(EncodedPolicyReference, LearnsAsPyTorchsModulesDo) {
  constexpr std::int64_t kHidden = 20;
  const Observed numbers{"place", {6}, ObservedKind::numbers, 0};
  for (const std::string name : {"nature_half", "impala", "resnet18_half", "small", "low"}) {
    for (const std::string memory : {"none", "gru", "lstm"}) {
      if (memory != "none" && name != "nature_half" && name != "low") continue;
      const bool is_box = memory != "gru";
      const EnvironmentSpec spec{{numbers, kPicture}, is_box ? kBox : kChoice, {"reward"}};
      PolicySettings settings;
      const bool is_low = name == "low";  // its encoders' precision
      settings.encoder = is_low ? "nature_half" : name;
      if (is_low) settings.precision = Precision::bfloat16;
      settings.hidden = kHidden;
      if (memory == "gru") settings.memory = PolicyMemory::gru;
      if (memory == "lstm") settings.memory = PolicyMemory::lstm;
      torch::manual_seed(9);
      const EncodedPolicy network(spec, settings, at::kCPU);
      const at::Tensor observations = observations_of(spec, {kLength, kSamplers});
      const at::Tensor state = 0.5 * at::randn({kSamplers, network.memory_size()});
      const at::Tensor keep = at::rand({kLength, kSamplers}).gt(0.3).to(at::kFloat);
      const PolicyOutput output = network.unroll(observations, state, keep);
      const ActionDistribution distribution(spec.actions, output.logits);
      const at::Tensor actions = is_box ? at::randn({kLength, kSamplers, 3})
                                        : at::randint(4, {kLength, kSamplers, 1}, at::kFloat);
      const TakenSteps taken{
          actions, distribution.log_probs(actions).detach() + 0.2 * at::randn({kLength, kSamplers}),
          output.values.detach() + 0.1 * at::randn({kLength, kSamplers}),
          at::randn({kLength, kSamplers}), at::randn({kLength, kSamplers})};
      const at::Tensor loss =
          ppo_loss({}, distribution, output.values, taken, at::scalar_tensor(kLength * kSamplers))
              .loss;
      loss.backward();

      std::ofstream names(folder_ / "names");
      for (const auto& [parameter, tensor] : network.parameters()) {
        give(parameter, tensor);
        names << parameter << "\n";
      }
      names.close();
      constexpr double kLearningRate = 1e-3, kEpsilon = 1e-3;
      Optimizer optimizer(tensors_of(network.parameters()), {.kind = OptimizerKind::adam,
                                                             .learning_rate = kLearningRate,
                                                             .scaling = {},
                                                             .beta1 = 0.9,
                                                             .beta2 = 0.999,
                                                             .epsilon = kEpsilon,
                                                             .momentum = 0,
                                                             .weight_decay = 0,
                                                             .clip_norm = 0});
      optimizer.step(kLearningRate);
      const auto rows = observations.flatten(0, 1);
      give("numbers", numbers_in(spec, rows).view({kLength, kSamplers, -1}));
      give("pictures", rows.narrow(1, numbers.bytes(), kPicture.bytes())
                           .reshape({kLength, kSamplers, 4, 40, 36})
                           .to(at::kDouble));
      give("memory", state);
      give("keep", keep);
      give("actions", taken.actions);
      give("log_probs", taken.log_probs);
      give("old_values", taken.values);
      give("advantages", taken.advantages);
      give("returns", taken.returns);
      give("sizes",
           at::tensor({is_box ? 3.0 : 4.0, static_cast<double>(kHidden), kLearningRate, kEpsilon},
                      at::kDouble));
      work_out("policy:" + settings.encoder + ":" + memory + ":" + (is_box ? "box" : "choice") +
               (is_low ? ":bfloat16" : ""));
      SCOPED_TRACE(name + " " + memory);
      const double tolerance = name == "resnet18_half" ? 2e-2 : 2e-3;
      // A CPU without such instructions adds up in bfloat16, in an order of its own.
      const double seen = is_low ? 5e-2 : 2e-5;
      const at::Tensor logits =
          is_box ? output.logits.narrow(-1, 0, 3) : output.logits;  // without the deviations
      expect_close("new_logits", logits, seen);
      expect_close("new_values", output.values, seen);
      if (memory != "none") expect_close("new_memory", output.memory, seen);
      expect_close("loss", loss, seen);
      if (is_low) continue;  // rounding decides what is clipped
      for (const auto& [parameter, tensor] : network.parameters()) {
        expect_close(parameter + ".gradient", tensor.grad(), tolerance);
        expect_close(parameter + ".updated", tensor, tolerance);
      }
    }
  }
}

TEST_F(EncodedPolicyReference, PyTorchComputesWithTheFileOfATrainedOne) {
  const EnvironmentSpec spec{{kNumbers}, kChoice, {"reward"}};
  PolicySettings settings;
  settings.normalise_observations = true;
  torch::manual_seed(4);
  EncodedPolicy policy(spec, settings, at::kCPU);
  const at::Tensor numbers = 5 + 3 * at::randn({kSamplers, 4});
  const at::Tensor observations = numbers.view(at::kByte);
  policy.update_statistics(observations, {});
  std::ofstream(folder_ / "trained_model.pt", std::ios::binary) << policy.exported();
  give("numbers", numbers);
  work_out("exported");
  const PolicyOutput output =
      policy.act(observations, at::zeros({kSamplers, 0}), at::ones({kSamplers}));
  expect_close("logits", output.logits, 1e-5);
  expect_close("values", output.values, 1e-5);
}

TEST(RunningMoments, AreThoseOfAllThatWasSeen) {
  torch::manual_seed(7);
  const at::Tensor values = 1000 + 3 * at::randn({400, 2});
  RunningMoments moments(2, at::kCPU);
  EXPECT_TRUE(moments.apply(at::full({1, 2}, 3.0)).allclose(at::full({1, 2}, 3.0)));
  for (const at::Tensor& some : values.split(150)) moments.update(some.unsqueeze(0), {});
  const at::Tensor in_double = values.to(at::kDouble);
  EXPECT_TRUE(moments.variance().allclose(in_double.var(0, /*unbiased=*/false), 1e-9));
  const at::Tensor normal = moments.apply(values);
  EXPECT_NEAR(normal.mean().item<double>(), 0, 1e-4);
  EXPECT_NEAR(normal.std().item<double>(), 1, 1e-2);
  EXPECT_EQ(moments.apply(at::full({1, 2}, 1e9F)).max().item<float>(), 10);
}

TEST(RunningMoments, AreThoseOfAllRanks) {
  torch::manual_seed(8);
  const at::Tensor values = 5 + at::randn({90, 2});
  RunningMoments alone(2, at::kCPU);
  alone.update(values, {});
  std::vector<RunningMoments> of_ranks(2, RunningMoments(2, at::kCPU));
  for (RunningMoments& each : of_ranks) each = RunningMoments(2, at::kCPU);
  on_every_rank(2, Machines::one, [&](const Meeting& meeting) {
    const Group group = make_group(meeting, Backend::gloo, std::chrono::seconds(60));
    const int rank = meeting.place.rank;
    of_ranks[static_cast<std::size_t>(rank)].update(values.narrow(0, 30 * rank, 30 + 30 * rank),
                                                    group);
  });
  for (const RunningMoments& each : of_ranks) {
    EXPECT_TRUE(each.apply(values).allclose(alone.apply(values), 1e-6, 1e-6));
  }
}
