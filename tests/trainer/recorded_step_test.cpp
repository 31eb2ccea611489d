// SPDX-License-Identifier: MIT
// Finds what a CUDA graph could not record, without a GPU: the operations of the recorded step that
// wait for the device. The step runs on two ranks of the CPU. What takes another way there runs on
// PyTorch's meta device, whose tensors have shapes and no values to read.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "tests/trainer/ranks.h"
#include "trainer/objectnav/house.h"
#include "trainer/objectnav/samplers.h"
#include "trainer/reinforcement/encoded_policy.h"
#include "trainer/reinforcement/ppo_loss.h"
#include "trainer/supervised/objective.h"
#include "trainer/training/graphed_step.h"

using namespace dtool::trainer;

namespace {

using Names = std::set<std::string>;

/// Of these a GPU's result has a size or a value that the CPU needs to go on.
bool waits_for_values(const std::string& name) {
  static const Names kWaiting = {
      "aten::_local_scalar_dense",
      "aten::_unique2",
      "aten::allclose",
      "aten::bincount",
      "aten::equal",
      "aten::is_nonzero",
      "aten::item",
      "aten::masked_select",
      "aten::nonzero",
      "aten::repeat_interleave",
      "aten::unique_consecutive",
      "aten::unique_dim",
  };
  return kWaiting.contains(name);
}

std::vector<at::Tensor> tensors_among(c10::ArrayRef<const c10::IValue> inputs) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& each : inputs) {
    if (each.isTensor() && each.toTensor().defined()) tensors.push_back(each.toTensor());
  }
  return tensors;
}

/// Between CPU and GPU, through memory that is not pinned.
bool copies_across(const std::string& name, const std::vector<at::Tensor>& tensors) {
  return name == "aten::copy_" && tensors.size() == 2 &&
         tensors[0].device().type() != tensors[1].device().type();
}

/// A GPU looks for the true ones first.
bool selects_by_mask(const std::string& name, c10::ArrayRef<const c10::IValue> inputs) {
  if (name != "aten::index" && name != "aten::index_put_" && name != "aten::_index_put_impl_") {
    return false;
  }
  for (const c10::IValue& each : inputs[1].toListRef()) {
    if (!each.isTensor() || !each.toTensor().defined()) continue;
    const auto type = each.toTensor().scalar_type();
    if (type == at::kBool || type == at::kByte) return true;
  }
  return false;
}

thread_local Names* t_waiting = nullptr;

std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& operation) {
  const std::string name = operation.name();
  const auto inputs = operation.inputs();
  if (waits_for_values(name) || copies_across(name, tensors_among(inputs)) ||
      selects_by_mask(name, inputs)) {
    t_waiting->insert(name);
  }
  return nullptr;
}

/// The operations of `work` for which this thread would wait for a GPU. What cannot go on without a
/// value ends there.
Names waiting_in(const std::function<void()>& work) {
  Names waiting;
  t_waiting = &waiting;
  const auto observer =
      at::addThreadLocalCallback(at::RecordFunctionCallback(note).needsInputs(true).scopes(
          {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  std::string problem;
  try {
    work();
  } catch (const std::exception& thrown) {
    problem = first_line(thrown);
  }
  at::removeCallback(observer);
  if (waiting.empty()) {
    EXPECT_EQ(problem, "");
  }
  return waiting;
}

struct Case {
  std::vector<std::string> layers;
  Loss loss = Loss::cross_entropy;
  Precision precision = Precision::float32;
  OptimizerKind optimizer = OptimizerKind::adam;
  SyncBatchNorm sync_batch_norm = SyncBatchNorm::no;
};

/// The operations that wait in the step that is recorded, with two batches of images of 8 by 8.
Names waiting_in_step(const Group& group, const Case& wanted) {
  ModelSettings settings;
  settings.loss = wanted.loss;
  settings.sync_batch_norm = wanted.sync_batch_norm;
  for (const auto& words : wanted.layers) settings.layers.push_back(parse_layer(words));
  const bool classes = wanted.loss == Loss::cross_entropy;
  const auto floats = at::TensorOptions(group.device).dtype(at::kFloat);
  const Batch samples{at::ones({6, 64}, floats),
                      classes ? at::ones({6}, floats.dtype(at::kLong)) : at::ones({6, 3}, floats)};
  const DataSet set{samples.inputs, samples.targets};
  const DataSets data{set, set, {1, 8, 8}, 3};
  SettingsObjective objective(make_model(settings, data, group), data, settings, wanted.precision);
  const auto parameters = tensors_of(objective.model().parameters());
  const OptimizerSettings optimizing{wanted.optimizer, 1e-3, {}, 0.9, 0.999, 1e-8, 0.9, 1e-2, 0};
  Optimizer optimizer(parameters, optimizing);
  DataParallel parallel(group, parameters);
  const at::Tensor results = at::zeros({2}, floats);

  const auto work = [&](const std::vector<at::Tensor>& inputs) {
    step_on_device(drawn_in(inputs, 2), objective, parallel, optimizer, results);
  };
  optimizer.prepare(1e-3);
  Names waiting;
  GraphedStep step(group.device, "", work, [&](const std::function<void()>& recorded) {
    waiting = waiting_in(recorded);
    return [] {};
  });
  const DrawnBatch all{{at::arange(6, floats.dtype(at::kLong))}};
  for (int i = 0; i <= GraphedStep::kWarmUp; ++i) step.run(tensors_of({all, all}));
  return waiting;
}

/// On two ranks of the CPU, connected.
void expect_nothing_waits(const Case& each) {
  on_every_rank(2, Machines::one, [&](const Meeting& meeting) {
    const Group group = make_group(meeting, Backend::gloo, std::chrono::seconds(60));
    EXPECT_EQ(waiting_in_step(group, each), Names{});
    sum_over_ranks(group, {1});
  });
}

constexpr std::array kLosses = {Loss::cross_entropy, Loss::mse, Loss::l1, Loss::huber, Loss::bce};

}  // namespace

TEST(Recorder, NamesWhatWaitsForAGpu) {
  const at::Tensor there = at::zeros({2}, at::kMeta);
  const at::Tensor here = at::ones({2});
  EXPECT_EQ(waiting_in([&] { there.sum().item<float>(); }).count("aten::item"), 1U);
  EXPECT_EQ(waiting_in([&] { there.copy_(here); }), Names{"aten::copy_"});
  EXPECT_EQ(waiting_in([&] { at::tensor({1.0, 2.0}, there.options()); }), Names{"aten::copy_"});
  EXPECT_EQ(waiting_in([&] { there.to(at::kCPU); }).count("aten::copy_"), 1U);
  EXPECT_EQ(waiting_in([&] { here.index({here > 0}); }).count("aten::index"), 1U);
  EXPECT_EQ(waiting_in([&] { here.nonzero(); }).count("aten::nonzero"), 1U);
  EXPECT_EQ(waiting_in([&] { here.index({at::arange(1)}).add_(there.numel()); }), Names{});
}

TEST(RecordedStep, WaitsForNothingWithAnyLayer) {
  const std::vector<std::string> layers = {"conv 4 3 padding 1",
                                           "batch_norm",
                                           "relu",
                                           "max_pool 2",
                                           "average_pool 2",
                                           "dropout 0.5",
                                           "linear 8",
                                           "gelu",
                                           "linear 8",
                                           "batch_norm",
                                           "tanh",
                                           "linear 8",
                                           "sigmoid"};
  expect_nothing_waits({.layers = layers});
  expect_nothing_waits({.layers = layers, .precision = Precision::bfloat16});
}

TEST(RecordedStep, WaitsForNothingWithAnyLossAndOptimizer) {
  for (const Loss loss : kLosses) expect_nothing_waits({.layers = {"linear 8"}, .loss = loss});
  for (const auto kind : {OptimizerKind::adamw, OptimizerKind::sgd}) {
    expect_nothing_waits({.layers = {"linear 8"}, .optimizer = kind});
  }
}

// On the CPU the optimizer takes another way.
TEST(RecordedStep, WaitsForNothingWhereGradientsAreClippedOffTheCpu) {
  at::Tensor weight = at::ones({4}, at::kMeta).requires_grad_(true);
  weight.mutable_grad() = at::ones({4}, at::kMeta);
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd}) {
    Optimizer optimizer({weight}, {kind, 1e-3, {}, 0.9, 0.999, 1e-8, 0.9, 1e-2, 1});
    EXPECT_EQ(waiting_in([&] { optimizer.step(1e-3); }), Names{});
  }
}

TEST(RecordedStep, WaitsForNothingWithBatchNormAcrossRanks) {
  const Case each{.layers = {"batch_norm", "linear 8"}, .sync_batch_norm = SyncBatchNorm::yes};
  expect_nothing_waits(each);
}

// The policy on the meta device, where the cells are PyTorch's operations, and the loss on the CPU,
// since its backward pass has no meta operations.
TEST(RecordedStep, WaitsForNothingInObjectNav) {
  constexpr std::int64_t kSteps = 5, kRows = 3, kHidden = 4;
  const auto floats = at::TensorOptions(at::kMeta).dtype(at::kFloat);
  const EncodedPolicy policy(objectnav_spec(),
                             {.embedding = 6, .memory = PolicyMemory::gru, .hidden = kHidden},
                             at::kMeta);
  const at::Tensor observations =
      at::empty({kSteps, kRows, kObservationBytes}, floats.dtype(at::kByte));
  const at::Tensor memory = at::empty({kRows, kHidden}, floats);
  const at::Tensor keep = at::empty({kSteps, kRows}, floats);
  EXPECT_EQ(waiting_in([&] { policy.unroll(observations, memory, keep); }), Names{});
  EXPECT_EQ(waiting_in([&] { policy.act(observations[0], memory, keep[0]); }), Names{});

  const at::Tensor each = at::rand({kSteps, kRows});
  const TakenSteps taken{at::ones({kSteps, kRows, 1}), each, each, each, each};
  const at::Tensor logits = at::rand({kSteps, kRows, kActions}).requires_grad_(true);
  EXPECT_EQ(waiting_in([&] {
              ppo_loss({}, {objectnav_spec().actions, logits}, each, taken, at::scalar_tensor(1.0F))
                  .loss.backward();
            }),
            Names{});
}

// The meta device has no convolutions.
TEST(RecordedStep, WaitsForNothingInAPolicyOfNumbersAndPixels) {
  constexpr std::int64_t kSteps = 5, kRows = 3;
  const auto floats = at::TensorOptions(at::kMeta).dtype(at::kFloat);
  const EnvironmentSpec spec{
      {{"place", {3}, ObservedKind::numbers, 0}, {"image", {3, 40, 40}, ObservedKind::pixels, 0}},
      {{}, {-1}, {1}},
      {"reward"}};
  for (const PolicyMemory kind : {PolicyMemory::none, PolicyMemory::lstm}) {
    const EncodedPolicy policy(
        spec,
        {.encoder_layers = {parse_layer("average_pool 2"), parse_layer("linear 4")},
         .memory = kind,
         .normalise_observations = true},
        at::kMeta);
    const at::Tensor observations =
        at::empty({kSteps, kRows, spec.observation_bytes()}, floats.dtype(at::kByte));
    const at::Tensor memory = at::empty({kRows, policy.memory_size()}, floats);
    const at::Tensor keep = at::empty({kSteps, kRows}, floats);
    EXPECT_EQ(waiting_in([&] { policy.unroll(observations, memory, keep); }), Names{});
    EXPECT_EQ(waiting_in([&] { policy.act(observations[0], memory, keep[0]); }), Names{});
  }
}
