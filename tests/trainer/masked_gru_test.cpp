// SPDX-License-Identifier: MIT
// The recurrent unit against torch.nn.GRUCell, and its two ways against each other.
#include "trainer/reinforcement/masked_gru.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/trainer/reference.h"
#include "trainer/model/model.h"
#include "trainer/reinforcement/gru_gates.h"

using namespace dtool::trainer;

namespace {

constexpr std::int64_t kGruSteps = 21, kGruRows = 5, kInputs = 11, kWidth = 19;

struct DrawnSequences {
  explicit DrawnSequences(std::uint64_t seed) {
    torch::manual_seed(seed);
    weights = {leaf({kInputs, 3 * kWidth}), leaf({kWidth, 3 * kWidth}), leaf({3 * kWidth}),
               leaf({3 * kWidth})};
    inputs = leaf({kGruSteps, kGruRows, kInputs});
    memory = leaf({kGruRows, kWidth});
    keep = at::rand({kGruSteps, kGruRows}).gt(0.2).to(at::kFloat);
    direction = at::randn({kGruSteps, kGruRows, kWidth});
  }

  static at::Tensor leaf(at::IntArrayRef shape) {
    return (0.3 * at::randn(shape)).requires_grad_(true);
  }

  RecurrentWeights weights;
  at::Tensor inputs, memory, keep, direction;
};

class MaskedGru : public WithReference {};

/// PyTorch's kernels for a cell, as it has them on GPUs (aten/src/ATen/native/cuda/RNN.cu): this
/// says their contract in operations, so that our use of them runs on CPUs, too.
std::tuple<at::Tensor, at::Tensor> cell_forward(const at::Tensor& of_inputs,
                                                const at::Tensor& of_memory,
                                                const at::Tensor& memory,
                                                const c10::optional<at::Tensor>& input_bias,
                                                const c10::optional<at::Tensor>& recurrent_bias) {
  const auto in = (of_inputs + *input_bias).chunk(3, 1);
  const auto recurrent = (of_memory + *recurrent_bias).chunk(3, 1);
  const at::Tensor r = (in[0] + recurrent[0]).sigmoid();
  const at::Tensor z = (in[1] + recurrent[1]).sigmoid();
  const at::Tensor n = (in[2] + r * recurrent[2]).tanh();
  return {n + z * (memory - n), at::cat({r, z, n, memory, recurrent[2]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> cell_backward(
    const at::Tensor& gradient, const at::Tensor& workspace, bool has_bias) {
  EXPECT_FALSE(has_bias);
  const auto saved = workspace.chunk(5, 1);
  const auto &r = saved[0], &z = saved[1], &n = saved[2], &memory = saved[3], &m = saved[4];
  const at::Tensor at_n = gradient * (1 - z) * (1 - n * n);
  const at::Tensor at_r = at_n * m * r * (1 - r);
  const at::Tensor at_z = gradient * (memory - n) * z * (1 - z);
  return {at::cat({at_r, at_z, at_n}, 1), at::cat({at_r, at_z, at_n * r}, 1), gradient * z, {}, {}};
}

}  // namespace

TEST_F(MaskedGru, IsPyTorchsCellWhoseMemoryIsForgottenWithTheEpisode) {
  const DrawnSequences given(1);
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
  const DrawnSequences given(2);
  const auto doubled = [](const at::Tensor& tensor) { return tensor.detach().to(at::kDouble); };
  const RecurrentWeights weights{doubled(given.weights.input), doubled(given.weights.recurrent),
                                 doubled(given.weights.input_bias),
                                 doubled(given.weights.recurrent_bias)};
  const at::Tensor loops = masked_gru(given.weights, given.inputs, given.memory, given.keep);
  const at::Tensor operations =
      masked_gru(weights, doubled(given.inputs), doubled(given.memory), doubled(given.keep));
  ASSERT_EQ(operations.scalar_type(), at::kDouble);
  EXPECT_TRUE(doubled(loops).allclose(operations, 0, 1e-6));
}

TEST(MaskedGruWays, TakeInputsOfLowPrecision) {
  const DrawnSequences given(7);
  const at::Tensor loops = masked_gru(given.weights, given.inputs, given.memory, given.keep);
  const Autocast autocast(Precision::bfloat16, at::kCPU);
  const at::Tensor inputs = given.inputs.detach().to(at::kBFloat16);
  const at::Tensor low = masked_gru(given.weights, inputs, given.memory, given.keep);
  EXPECT_TRUE(low.to(at::kFloat).allclose(loops, 0, 0.05));
  const at::Tensor step =
      masked_gru_step(given.weights, inputs[0], given.memory.detach(), given.keep[0]);
  EXPECT_TRUE(step.to(at::kFloat).allclose(loops[0], 0, 0.05));
}

TEST(MaskedGruWays, WriteNothingBehindTheMemoryThatIsKept) {
  constexpr std::int64_t rows = 2, width = 3;
  const std::vector<float> bias(3 * width, 0.5F), recurrent(rows * 3 * width, 0.25F);
  const std::vector<float> memory(rows * width, 1), keep = {1, 0};
  std::vector<float> gates(rows * 3 * width, 0.125F), candidate(rows * width);
  std::vector<float> next(rows * width + 1, 99), kept(rows * width + 1, 99);
  gates_forward({rows, width}, {.input_bias = bias.data(),
                                .recurrent_bias = bias.data(),
                                .recurrent = recurrent.data(),
                                .memory = memory.data(),
                                .next_keep = keep.data(),
                                .gates = gates.data(),
                                .candidate = candidate.data(),
                                .next_memory = next.data(),
                                .kept_memory = kept.data()});
  for (std::size_t i = 0; i < rows * width; ++i) EXPECT_EQ(kept[i], i < width ? next[i] : 0) << i;
  EXPECT_EQ(kept.back(), 99);
  EXPECT_EQ(next.back(), 99);
}

TEST(MaskedGruWays, OfKernelsAndOfOperationsGiveTheGradientsOfTheLoops) {
  torch::Library kernels(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
  kernels.impl("_thnn_fused_gru_cell", cell_forward);
  kernels.impl("_thnn_fused_gru_cell_backward", cell_backward);
  const DrawnSequences given(6);
  const std::vector<at::Tensor> leaves = {given.weights.input,
                                          given.weights.recurrent,
                                          given.weights.input_bias,
                                          given.weights.recurrent_bias,
                                          given.inputs,
                                          given.memory};
  const auto run = [&](GruWay way) {
    for (const auto& each : leaves) each.mutable_grad().reset();
    at::Tensor result = masked_gru(given.weights, given.inputs, given.memory, given.keep, way);
    (result * given.direction).sum().backward();
    std::vector<at::Tensor> all = {result};
    for (const auto& each : leaves) all.push_back(each.grad().clone());
    all.push_back(
        masked_gru_step(given.weights, given.inputs[1], given.memory, given.keep[1], way));
    return all;
  };
  const auto loops = run(GruWay::loops);
  for (const auto way : {GruWay::kernels, GruWay::operations}) {
    const auto others = run(way);
    for (std::size_t i = 0; i < loops.size(); ++i) {
      EXPECT_TRUE(others[i].allclose(loops[i], 1e-4, 1e-5)) << i;
    }
  }
}

TEST(MaskedGruWays, GoStepByStepWhereTheyGoInOne) {
  const DrawnSequences given(3);
  const at::Tensor whole = masked_gru(given.weights, given.inputs, given.memory, given.keep);
  at::Tensor memory = given.memory.detach();
  for (std::int64_t t = 0; t < kGruSteps; ++t) {
    memory = masked_gru_step(given.weights, given.inputs[t], memory, given.keep[t]);
    ASSERT_TRUE(memory.allclose(whole[t], 0, 1e-6)) << t;
  }
  EXPECT_FALSE(memory.requires_grad());
}

TEST(MaskedGruWays, RefuseASecondPassThroughWhatTheFirstHasUsedUp) {
  const DrawnSequences given(4);
  const at::Tensor loss = masked_gru(given.weights, given.inputs, given.memory, given.keep).sum();
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(MaskedGruWays, GiveTheSameNumbersOnEveryRun) {
  const DrawnSequences given(5);
  std::vector<at::Tensor> gradients;
  for (int run = 0; run < 2; ++run) {
    given.weights.recurrent.mutable_grad().reset();
    masked_gru(given.weights, given.inputs, given.memory, given.keep).square().sum().backward();
    gradients.push_back(given.weights.recurrent.grad().clone());
  }
  EXPECT_TRUE(gradients[0].equal(gradients[1]));
}
