// SPDX-License-Identifier: MIT
// Models and their losses, batch norm across ranks, and the loader of their batches.
#include "trainer/model/network.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <numeric>

#include "tests/trainer/ranks.h"
#include "trainer/data/data_set.h"
#include "trainer/data/sampler.h"
#include "trainer/settings/usage_error.h"
#include "trainer/supervised/objective.h"
#include "trainer/training/data_parallel.h"

using namespace dtool::trainer;

namespace {

std::unique_ptr<Network> network(const std::vector<std::string>& layers, const Shape& shape,
                                 const Group& group = {}) {
  ModelSettings settings;
  settings.sync_batch_norm = SyncBatchNorm::yes;
  for (const auto& words : layers) settings.layers.push_back(parse_layer(words));
  DataSets data;
  data.shape = shape;
  data.outputs = 3;
  torch::manual_seed(5);
  return std::make_unique<Network>(settings, data, group);
}

DataSet numbered_samples(std::int64_t count) {
  const at::Tensor numbers = at::arange(count, at::TensorOptions(at::kByte)).view({count, 1});
  return {numbers.expand({count, 4}).contiguous(), at::arange(count)};
}

std::vector<std::int64_t> backwards(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

/// Notes this thread's operations that copy a value to the CPU, and so wait for a GPU.
class WaitsSeen {
 public:
  explicit WaitsSeen(std::vector<std::string>& waits) {
    names() = &waits;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(note));
  }
  ~WaitsSeen() { at::removeCallback(handle_); }

 private:
  static std::vector<std::string>*& names() {
    thread_local std::vector<std::string>* of_this_thread = nullptr;
    return of_this_thread;
  }

  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& operation) {
    const std::string name = operation.name();
    for (const char* each : {"aten::item", "aten::_local_scalar_dense", "aten::nonzero"}) {
      if (name == each) names()->push_back(name);
    }
    return nullptr;
  }

  at::CallbackHandle handle_{};
};

}  // namespace

TEST(Network, ConvolutionsPoolsAndNormsTurnImagesIntoOutputs) {
  const auto model = network({"conv 4 3", "batch_norm", "relu", "max_pool 2", "conv 8 3 padding 1",
                              "average_pool 2", "dropout 0.5", "linear 16", "gelu"},
                             {1, 28, 28});
  const at::Tensor images = at::rand({5, 784});
  EXPECT_EQ(model->forward(images).sizes(), (at::IntArrayRef{5, 3}));
  EXPECT_EQ(model->random_numbers(), RandomNumbers::drawn);
  std::vector<std::string> names;
  for (const auto& each : model->parameters()) names.push_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1.weight", "conv1.bias", "bn1.weight", "bn1.bias",
                                             "conv2.weight", "conv2.bias", "fc1.weight", "fc1.bias",
                                             "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(model->buffers().size(), 2U);
}

TEST(Network, DropoutAndRunningAveragesFollowTheMode) {
  const auto model = network({"linear 8", "batch_norm", "dropout 0.5"}, {4});
  const at::Tensor values = at::rand({16, 4});
  EXPECT_FALSE(model->forward(values).equal(model->forward(values)));
  model->set_mode(Mode::evaluation);
  const at::Tensor averages = model->buffers()[0].tensor.clone();
  EXPECT_TRUE(model->forward(values).equal(model->forward(values)));
  EXPECT_TRUE(model->buffers()[0].tensor.equal(averages));
}

TEST(Network, LayersThatDoNotFitTheSamplesAreRefused) {
  EXPECT_THROW(network({"conv 4 3"}, {10}), UsageError);
  EXPECT_THROW(network({"conv 4 5"}, {1, 4, 4}), UsageError);
}

// Each rank has its part of the batch; outputs, running averages and all gradients are those of one
// rank with the whole, summed over the ranks for weight and bias.
TEST(SyncBatchNorm, EqualsOneRankWithTheWholeBatch) {
  for (const bool images : {false, true}) {
    torch::manual_seed(3);
    const std::vector<std::int64_t> shape =
        images ? std::vector<std::int64_t>{12, 5, 3, 2} : std::vector<std::int64_t>{12, 5};
    const at::Tensor whole = (at::randn(shape) * 3 + 50).requires_grad_(true);
    const at::Tensor target = at::randn(shape);
    const at::Tensor weight = at::rand({5}).requires_grad_(true);
    const at::Tensor bias = at::rand({5}).requires_grad_(true);
    const at::Tensor mean = at::zeros({5});
    const at::Tensor variance = at::ones({5});
    const at::Tensor expected =
        at::batch_norm(whole, weight, bias, mean, variance, true, 0.1, 1e-5, false);
    (expected * target).sum().backward();

    // 1, 4 and 7 samples: unequal parts.
    constexpr std::int64_t kBegin[] = {0, 1, 5, 12};
    std::vector<at::Tensor> of_weight(kRanks);
    std::vector<at::Tensor> of_bias(kRanks);
    on_every_rank([&](const Group& group) {
      const auto rank = static_cast<std::size_t>(group.rank);
      const auto begin = kBegin[rank];
      const auto end = kBegin[rank + 1];
      const at::Tensor part = whole.detach().slice(0, begin, end).clone().requires_grad_(true);
      const BatchNormTensors tensors{weight.detach().clone().requires_grad_(true),
                                     bias.detach().clone().requires_grad_(true), at::zeros({5}),
                                     at::ones({5})};
      const at::Tensor out = sync_batch_norm(group, part, tensors, 0.1, 1e-5);
      EXPECT_TRUE(out.allclose(expected.slice(0, begin, end), 1e-4, 1e-5));
      EXPECT_TRUE(tensors.running_mean.allclose(mean, 1e-5, 1e-6));
      EXPECT_TRUE(tensors.running_variance.allclose(variance, 1e-4, 1e-6));
      (out * target.slice(0, begin, end)).sum().backward();
      EXPECT_TRUE(part.grad().allclose(whole.grad().slice(0, begin, end), 1e-3, 1e-5));
      of_weight[rank] = tensors.weight.grad();
      of_bias[rank] = tensors.bias.grad();
    });
    EXPECT_TRUE((of_weight[0] + of_weight[1] + of_weight[2]).allclose(weight.grad(), 1e-4, 1e-4));
    EXPECT_TRUE((of_bias[0] + of_bias[1] + of_bias[2]).allclose(bias.grad(), 1e-4, 1e-4));
  }
}

// bfloat16 has 8 bits: the mean of values around 50 is told apart from 50 only in float32.
TEST(SyncBatchNorm, ComputesInFloat32WhateverTheTypeOfTheValues) {
  torch::manual_seed(3);
  const at::Tensor whole = (at::randn({12, 5, 3, 2}) * 3 + 50).to(at::kBFloat16);
  const at::Tensor mean = at::zeros({5});
  const at::Tensor variance = at::ones({5});
  const at::Tensor expected = at::batch_norm(whole.to(at::kFloat), at::ones({5}), at::zeros({5}),
                                             mean, variance, true, 0.1, 1e-5, false);
  on_every_rank([&](const Group& group) {
    const at::Tensor part =
        whole.slice(0, 4 * group.rank, 4 * (group.rank + 1)).clone().requires_grad_(true);
    const BatchNormTensors tensors{at::ones({5}).requires_grad_(true),
                                   at::zeros({5}).requires_grad_(true), at::zeros({5}),
                                   at::ones({5})};
    const at::Tensor out = sync_batch_norm(group, part, tensors, 0.1, 1e-5);
    EXPECT_EQ(out.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(
        out.to(at::kFloat)
            .allclose(expected.slice(0, 4 * group.rank, 4 * (group.rank + 1)), 1. / 128, 1e-3));
    EXPECT_TRUE(tensors.running_mean.allclose(mean, 1e-5, 1e-6));
    EXPECT_TRUE(tensors.running_variance.allclose(variance, 1e-4, 1e-6));
    out.to(at::kFloat).square().sum().backward();
    EXPECT_EQ(part.grad().scalar_type(), at::kBFloat16);
    EXPECT_EQ(tensors.weight.grad().scalar_type(), at::kFloat);
  });
}

// What a recorded step must not do. No GPU is needed to see it: the same operations run on CPUs.
TEST(Network, AStepNeverWaitsForTheDevice) {
  on_every_rank([](const Group& group) {
    const auto model =
        network({"conv 4 3", "batch_norm", "relu", "max_pool 2", "average_pool 2", "dropout 0.5",
                 "linear 16", "batch_norm", "gelu", "tanh", "sigmoid"},
                {1, 28, 28}, group);
    DataParallel parallel(group, tensors_of(model->parameters()));
    const at::Tensor images = at::rand({5, 784});
    const at::Tensor labels = at::zeros({5}, at::kLong);
    std::vector<std::string> waits;
    {
      const WaitsSeen seen(waits);
      parallel.begin_step();
      parallel.backward(mean_loss(Loss::cross_entropy, model->forward(images), labels),
                        AcrossRanks::yes);
    }
    EXPECT_EQ(waits, std::vector<std::string>{});
    const WaitsSeen seen(waits);
    images.sum().item<float>();
    EXPECT_FALSE(waits.empty());
  });
}

TEST(Loss, NeverSpreadsOneShapeOverAnother) {
  const at::Tensor outputs = at::tensor({1.0F, 2.0F, 4.0F}).view({3, 1});
  const at::Tensor targets = at::tensor({1.0F, 1.0F, 1.0F});
  EXPECT_FLOAT_EQ(mean_loss(Loss::mse, outputs, targets).item<float>(), 10.0F / 3);
  EXPECT_THROW(mean_loss(Loss::mse, outputs, at::rand({2})), UsageError);
  EXPECT_THROW(mean_loss(Loss::mse, outputs, at::zeros({3}, at::kLong)), UsageError);
  EXPECT_THROW(mean_loss(Loss::cross_entropy, outputs, targets), UsageError);
  EXPECT_THROW(mean_loss(Loss::cross_entropy, at::rand({3}), at::zeros({3}, at::kLong)),
               UsageError);
}

TEST(GatherBytes, DividesAsPyTorchDoes) {
  std::vector<std::uint8_t> rows(256 * 2);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint8_t>(i);
  const std::vector<std::int64_t> samples = {1, 0};
  std::vector<float> out(512);
  gather_bytes(rows.data(), 256, samples, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i], static_cast<float>(i % 256) / 255.0F) << i;
  }
}

TEST(GatherBytes, TakesTheRowsThatAreAskedForAndWritesNothingBehindThem) {
  constexpr std::size_t width = 100;
  std::vector<std::uint8_t> rows(6 * width);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint8_t>(i % 251);
  const std::vector<std::int64_t> samples = {5, 0, 3, 3, 1, 2, 4};
  std::vector<float> out(samples.size() * width + 1, 99);
  gather_bytes(rows.data(), width, samples, out.data());
  for (std::size_t i = 0; i < samples.size() * width; ++i) {
    const auto at = static_cast<std::size_t>(samples[i / width]) * width + i % width;
    EXPECT_EQ(out[i], static_cast<float>(rows[at]) / 255.0F) << i;
  }
  EXPECT_EQ(out.back(), 99);
}

TEST(BatchLoader, HandsOutEverySampleInOrderWithAndWithoutAThread) {
  const DataSet set = numbered_samples(23);
  for (const std::int64_t ahead : {0, 1, 2, 100}) {
    BatchLoader loader(set, backwards(23), 5, ahead);
    std::vector<std::int64_t> seen;
    std::vector<std::int64_t> sizes;
    while (const auto drawn = loader.next()) {
      sizes.push_back(drawn->size());
      const Batch batch = drawn->from(set);
      for (std::int64_t i = 0; i < batch.size(); ++i) {
        seen.push_back(batch.targets[i].item<std::int64_t>());
        EXPECT_EQ(batch.inputs[i][3].item<float>(), static_cast<float>(seen.back()) / 255.0F);
      }
    }
    EXPECT_EQ(seen, backwards(23)) << ahead;
    EXPECT_EQ(sizes, (std::vector<std::int64_t>{5, 5, 5, 5, 3}));
    EXPECT_FALSE(loader.next());
  }
}

// On a GPU a batch is numbers until the step.
TEST(BatchLoader, HasSamplesByTheirNumbersAsThoseThatWereGathered) {
  const DataSet set = numbered_samples(9);
  const DrawnBatch numbers{{at::tensor(std::vector<std::int64_t>{7, 0, 3})}};
  BatchLoader loader(set, {7, 0, 3}, 3, 0);
  const Batch gathered = loader.next()->from(set);
  EXPECT_EQ(numbers.size(), 3);
  EXPECT_TRUE(numbers.from(set).inputs.equal(gathered.inputs));
  EXPECT_TRUE(numbers.from(set).targets.equal(gathered.targets));
}

TEST(BatchLoader, EndsItsThreadWhenNobodyTakesTheRest) {
  const DataSet set = numbered_samples(200);
  BatchLoader loader(set, backwards(200), 1, 3);
  EXPECT_TRUE(loader.next());
}

TEST(BatchLoader, PassesOnWhatGoesWrongWhileGathering) {
  const DataSet set = numbered_samples(4);
  const DataSet broken{set.inputs.to(at::kFloat), set.targets};
  BatchLoader loader(broken, {0, 99}, 2, 2);  // there is no sample 99
  EXPECT_ANY_THROW(loader.next());
}
