// SPDX-License-Identifier: MIT
// The recurrent unit against torch.nn.GRUCell, and its two ways against each other.
#include "trainer/reinforcement/masked_gru.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/trainer/reference.h"

using namespace dtool::trainer;

namespace {

constexpr std::int64_t kSteps = 21, kRows = 5, kInputs = 11, kWidth = 19;

struct Sequences {
  explicit Sequences(std::uint64_t seed) {
    torch::manual_seed(seed);
    weights = {leaf({kInputs, 3 * kWidth}), leaf({kWidth, 3 * kWidth}), leaf({3 * kWidth}),
               leaf({3 * kWidth})};
    inputs = leaf({kSteps, kRows, kInputs});
    memory = leaf({kRows, kWidth});
    keep = at::rand({kSteps, kRows}).gt(0.2).to(at::kFloat);
    direction = at::randn({kSteps, kRows, kWidth});
  }

  static at::Tensor leaf(at::IntArrayRef shape) {
    return (0.3 * at::randn(shape)).requires_grad_(true);
  }

  GruWeights weights;
  at::Tensor inputs, memory, keep, direction;
};

class MaskedGru : public WithReference {};

}  // namespace

TEST_F(MaskedGru, IsPyTorchsCellWhoseMemoryIsForgottenWithTheEpisode) {
  const Sequences given(1);
  EXPECT_GT((1 - given.keep).sum().item<float>(), 0);
  const at::Tensor result = masked_gru(given.weights, given.inputs, given.memory, given.keep);
  (result * given.direction).sum().backward();
  const std::vector<std::pair<std::string, at::Tensor>> leaves = {
      {"input_weight", given.weights.input},
      {"recurrent_weight", given.weights.recurrent},
      {"input_bias", given.weights.input_bias},
      {"recurrent_bias", given.weights.recurrent_bias},
      {"inputs", given.inputs},
      {"memory", given.memory}};
  for (const auto& [name, tensor] : leaves) give(name, tensor);
  give("keep", given.keep);
  give("direction", given.direction);
  work_out("gru");
  expect_close("result", result, 1e-6);
  for (const auto& [name, tensor] : leaves) {
    expect_close(name + ".gradient", tensor.grad(), 2e-6);
  }
}

TEST(MaskedGruWays, AgreeAndAreTakenByTheTypeOfNumber) {
  const Sequences given(2);
  const auto doubled = [](const at::Tensor& tensor) { return tensor.detach().to(at::kDouble); };
  const GruWeights weights{doubled(given.weights.input), doubled(given.weights.recurrent),
                           doubled(given.weights.input_bias),
                           doubled(given.weights.recurrent_bias)};
  const at::Tensor loops = masked_gru(given.weights, given.inputs, given.memory, given.keep);
  const at::Tensor operations =
      masked_gru(weights, doubled(given.inputs), doubled(given.memory), doubled(given.keep));
  ASSERT_EQ(operations.scalar_type(), at::kDouble);
  EXPECT_TRUE(doubled(loops).allclose(operations, 0, 1e-6));
}

TEST(MaskedGruWays, GoStepByStepWhereTheyGoInOne) {
  const Sequences given(3);
  const at::Tensor whole = masked_gru(given.weights, given.inputs, given.memory, given.keep);
  at::Tensor memory = given.memory.detach();
  for (std::int64_t t = 0; t < kSteps; ++t) {
    memory = masked_gru_step(given.weights, given.inputs[t], memory, given.keep[t]);
    ASSERT_TRUE(memory.allclose(whole[t], 0, 1e-6)) << t;
  }
  EXPECT_FALSE(memory.requires_grad());
}

TEST(MaskedGruWays, RefuseASecondPassThroughWhatTheFirstHasUsedUp) {
  const Sequences given(4);
  const at::Tensor loss = masked_gru(given.weights, given.inputs, given.memory, given.keep).sum();
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(MaskedGruWays, GiveTheSameNumbersOnEveryRun) {
  const Sequences given(5);
  std::vector<at::Tensor> gradients;
  for (int run = 0; run < 2; ++run) {
    given.weights.recurrent.mutable_grad().reset();
    masked_gru(given.weights, given.inputs, given.memory, given.keep).square().sum().backward();
    gradients.push_back(given.weights.recurrent.grad().clone());
  }
  EXPECT_TRUE(gradients[0].equal(gradients[1]));
}
