// SPDX-License-Identifier: MIT
// Each optimizer against PyTorch's own, and a checkpoint's way there and back.
#include "trainer/training/optimizer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <torch/nn/utils/clip_grad.h>  // needs torch/types.h before it

#include <cmath>
#include <mutex>
#include <optional>

#include "tests/trainer/own_folder.h"
#include "tests/trainer/ranks.h"
#include "trainer/model/network.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/snapshot.h"

using namespace dtool::trainer;

namespace {

constexpr double kRate = 1e-2;

OptimizerSettings settings_of(OptimizerKind kind, double decay, double clip = 0) {
  return {.kind = kind,
          .learning_rate = kRate,
          .scaling = {},
          .beta1 = 0.9,
          .beta2 = 0.999,
          .epsilon = 1e-8,
          .momentum = 0.9,
          .weight_decay = decay,
          .clip_norm = clip};
}

std::unique_ptr<torch::optim::Optimizer> reference_of(OptimizerKind kind, double decay,
                                                      const std::vector<at::Tensor>& parameters) {
  using namespace torch::optim;
  switch (kind) {
    case OptimizerKind::adam:
      return std::make_unique<Adam>(parameters, AdamOptions(kRate).weight_decay(decay));
    case OptimizerKind::adamw:
      return std::make_unique<AdamW>(parameters, AdamWOptions(kRate).weight_decay(decay));
    case OptimizerKind::sgd:
    case OptimizerKind::lamb:
      break;
  }
  return std::make_unique<SGD>(parameters, SGDOptions(kRate).momentum(0.9).weight_decay(decay));
}

void set_gradients(const std::vector<at::Tensor>& parameters,
                   const std::vector<at::Tensor>& gradients) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].mutable_grad() = gradients[i].clone();
  }
}

/// A chain of layers on samples of six values with two classes.
Network network(const std::vector<std::string>& layers) {
  ModelSettings settings;
  for (const auto& words : layers) settings.layers.push_back(parse_layer(words));
  DataSets data;
  data.shape = {6};
  data.outputs = 2;
  return Network(settings, data, Group{});
}

/// A network that has taken one step.
struct Trained {
  Trained(const std::vector<std::string>& layers, OptimizerKind kind)
      : model(network(layers)), optimizer(tensors_of(model.parameters()), settings_of(kind, 0)) {
    for (const auto& each : model.parameters()) {
      each.tensor.mutable_grad() = at::randn_like(each.tensor);
    }
    optimizer.step(kRate);
  }
  Network model;
  Optimizer optimizer;
};

}  // namespace

std::string packed(Trained& trained, const Progress& progress,
                   const std::vector<NamedTensor>& others = {}) {
  auto state = std::make_shared<TrainedState>(copy_state(trained.model, trained.optimizer));
  std::string bytes;
  write(take_snapshot(std::move(state), progress, others),
        [&](std::string_view part) { bytes += part; });
  return bytes;
}

class Snapshots : public OwnFolder {
 protected:
  /// A reader of a file with `bytes`, for a group of one.
  CheckpointReader reader_of(const std::string& bytes) {
    write_whole(file_, bytes);
    return CheckpointReader(alone_, "", CheckpointFile(file_));
  }

  const Group alone_;
  const std::filesystem::path file_ = folder_ / "x.safetensors";
};

TEST(Optimizer, TakesPyTorchsStepsOnEveryPath) {
  torch::manual_seed(1);
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd}) {
    for (const double decay : {0.0, 0.1, 1.0}) {
      for (const auto type : {at::kFloat, at::kDouble}) {  // one pass, and tensor operations
        const at::Tensor start = at::randn({37, 5}, at::TensorOptions(type));
        const at::Tensor ours = start.clone().requires_grad_(true);
        const at::Tensor theirs = start.clone().requires_grad_(true);
        Optimizer optimizer({ours}, settings_of(kind, decay));
        const auto reference = reference_of(kind, decay, {theirs});
        for (int step = 0; step < 20; ++step) {
          const at::Tensor gradient = at::randn_like(start);
          set_gradients({ours, theirs}, {gradient, gradient});
          optimizer.step(kRate);
          reference->step();
        }
        EXPECT_TRUE(at::allclose(ours.detach(), theirs.detach(), 1e-5, 1e-6))
            << static_cast<int>(kind) << ' ' << decay << ' ' << (ours - theirs).abs().max();
        EXPECT_FALSE(at::allclose(ours.detach(), start));
      }
    }
  }
}

TEST(Optimizer, LeavesVectorsAsTheyAreWhereOnlyMatricesDecay) {
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd}) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      torch::manual_seed(2);
      const at::TensorOptions options(type);
      const std::vector<at::Tensor> start = {at::randn({7, 5}, options), at::randn({7}, options)};
      std::vector<at::Tensor> ours, theirs;
      for (const at::Tensor& each : start) {
        ours.push_back(each.clone().requires_grad_(true));
        theirs.push_back(each.clone().requires_grad_(true));
      }
      OptimizerSettings settings = settings_of(kind, 0.3);
      settings.decays_vectors = false;
      Optimizer optimizer(ours, settings);
      const auto of_matrix = reference_of(kind, 0.3, {theirs[0]});
      const auto of_vector = reference_of(kind, 0, {theirs[1]});
      for (int step = 0; step < 5; ++step) {
        const std::vector<at::Tensor> gradients = {at::randn_like(start[0]),
                                                   at::randn_like(start[1])};
        set_gradients(ours, gradients);
        set_gradients(theirs, gradients);
        optimizer.step(kRate);
        of_matrix->step();
        of_vector->step();
      }
      EXPECT_TRUE(ours[0].allclose(theirs[0], 1e-5, 1e-6)) << static_cast<int>(kind);
      EXPECT_TRUE(ours[1].allclose(theirs[1], 1e-5, 1e-6)) << static_cast<int>(kind);
    }
  }
}

// PyTorch has no LAMB: the paper's algorithm, number by number.
TEST(Optimizer, TakesLambsStepsAsThePaperHasThem) {
  torch::manual_seed(3);
  constexpr double kDecay = 0.2, kEpsilon = 1e-8;
  const at::Tensor weights = at::randn({6}, at::kDouble).requires_grad_(true);
  const at::Tensor nothing = at::zeros({2}, at::kDouble).requires_grad_(true);
  Optimizer optimizer({weights, nothing}, settings_of(OptimizerKind::lamb, kDecay));
  std::vector<double> x(6), m(6), v(6);
  for (std::size_t i = 0; i < 6; ++i) x[i] = weights[static_cast<std::int64_t>(i)].item<double>();
  for (int step = 1; step <= 4; ++step) {
    const at::Tensor gradient = at::randn({6}, at::kDouble);
    set_gradients({weights, nothing}, {gradient, at::ones({2}, at::kDouble)});
    optimizer.step(kRate);
    std::vector<double> r(6);
    double length = 0, of_step = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      const double g = gradient[static_cast<std::int64_t>(i)].item<double>();
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      const double first = m[i] / (1 - std::pow(0.9, step));
      const double second = v[i] / (1 - std::pow(0.999, step));
      r[i] = first / (std::sqrt(second) + kEpsilon) + kDecay * x[i];
      length += x[i] * x[i];
      of_step += r[i] * r[i];
    }
    for (std::size_t i = 0; i < 6; ++i) x[i] -= kRate * std::sqrt(length / of_step) * r[i];
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(weights[static_cast<std::int64_t>(i)].item<double>(), x[i], 1e-12) << step;
    }
    // From 0 on the step has its own length at first, since there is no ratio.
    if (step == 1) {
      EXPECT_NEAR(nothing[0].item<double>(), -kRate, 1e-9);
    }
  }
}

TEST(Optimizer, TakesPyTorchsStepsHoweverTheNumbersLie) {
  torch::manual_seed(4);
  const at::Tensor start = at::randn({4, 3});
  const auto across = [](const at::Tensor& values) { return values.t().contiguous().t(); };
  for (const bool is_across : {true, false}) {
    const at::Tensor ours = (is_across ? across(start) : start.clone()).requires_grad_(true);
    const at::Tensor theirs = start.clone().requires_grad_(true);
    Optimizer optimizer({ours}, settings_of(OptimizerKind::adam, 0.1));
    const auto reference = reference_of(OptimizerKind::adam, 0.1, {theirs});
    for (int step = 0; step < 3; ++step) {
      const at::Tensor gradient = at::randn({4, 3});
      theirs.mutable_grad() = gradient.clone();
      ours.mutable_grad() = is_across ? gradient.clone() : across(gradient);
      optimizer.step(kRate);
      reference->step();
    }
    EXPECT_TRUE(ours.allclose(theirs, 1e-5, 1e-6)) << is_across;
  }
}

TEST(Optimizer, KeepsAsManyAveragesAsItNeeds) {
  const std::vector<at::Tensor> parameters = {at::zeros({2}), at::zeros({3, 4})};
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd}) {
    Optimizer optimizer(parameters, settings_of(kind, 0));
    EXPECT_EQ(optimizer.kind(), kind);
    EXPECT_EQ(optimizer.state().first.size(), 2U);
    EXPECT_EQ(optimizer.state().second.size(), kind == OptimizerKind::sgd ? 0U : 2U);
  }
}

// In float, 1 - 0.999 is wrong in its fifth digit, and twenty steps add that up.
TEST(Optimizer, IsAsCloseToFloat64AsPyTorchsOwn) {
  constexpr int kSteps = 20;
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd}) {
    torch::manual_seed(3);
    const at::Tensor start = at::randn({400}, at::kDouble) * 1e-3;
    const at::Tensor exact = start.clone().requires_grad_(true);
    const at::Tensor theirs = start.to(at::kFloat).requires_grad_(true);
    const at::Tensor ours = start.to(at::kFloat).requires_grad_(true);
    const at::Tensor wide = start.clone().requires_grad_(true);  // by tensor operations
    const auto reference = reference_of(kind, 0.1, {exact});
    const auto in_float = reference_of(kind, 0.1, {theirs});
    Optimizer optimizer({ours}, settings_of(kind, 0.1));
    Optimizer by_operations({wide}, settings_of(kind, 0.1));
    const at::Tensor gradient =
        at::randn({400}, at::kDouble);  // the same of each step: nothing cancels out
    for (int step = 0; step < kSteps; ++step) {
      set_gradients({exact, wide}, {gradient, gradient});
      set_gradients({theirs, ours}, {gradient.to(at::kFloat), gradient.to(at::kFloat)});
      reference->step();
      in_float->step();
      optimizer.step(kRate);
      by_operations.step(kRate);
    }
    const auto distance = [&](const at::Tensor& values) {
      return (values.to(at::kDouble) - exact).abs().max().item<double>();
    };
    EXPECT_LT(distance(ours), 3 * distance(theirs)) << static_cast<int>(kind);
    EXPECT_LT(distance(wide), 1e-13) << static_cast<int>(kind);
  }
}

TEST(Optimizer, ClipsAllGradientsTogetherAsPyTorchDoes) {
  torch::manual_seed(2);
  for (const double longest : {0.5, 1e6}) {  // shortens, and leaves alone
    for (const auto type : {at::kFloat, at::kDouble}) {
      const auto options = at::TensorOptions(type);
      const std::vector<at::Tensor> start = {at::randn({7}, options), at::randn({3, 4}, options)};
      std::vector<at::Tensor> ours;
      std::vector<at::Tensor> theirs;
      std::vector<at::Tensor> gradients;
      for (const at::Tensor& each : start) {
        ours.push_back(each.clone().requires_grad_(true));
        theirs.push_back(each.clone().requires_grad_(true));
        gradients.push_back(at::randn_like(each));
      }
      set_gradients(ours, gradients);
      set_gradients(theirs, gradients);
      Optimizer optimizer(ours, settings_of(OptimizerKind::sgd, 0, longest));
      optimizer.step(kRate);
      torch::nn::utils::clip_grad_norm_(theirs, longest);
      reference_of(OptimizerKind::sgd, 0, theirs)->step();
      for (std::size_t i = 0; i < ours.size(); ++i) {
        EXPECT_TRUE(at::allclose(ours[i].detach(), theirs[i].detach(), 1e-5, 1e-7)) << longest;
        if (type == at::kDouble) {
          EXPECT_TRUE(at::allclose(ours[i].detach(), theirs[i].detach(), 0, 1e-13)) << longest;
        }
        EXPECT_TRUE(ours[i].grad().equal(gradients[i])) << "it is shortened on its way only";
      }
    }
  }
}

TEST(Optimizer, LeavesAloneWhatLiesBehindAParameter) {
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::sgd}) {
    const at::Tensor whole = at::ones({4});
    const at::Tensor gradients = at::ones({4});
    const at::Tensor parameter = whole.narrow(0, 0, 3).requires_grad_(true);
    parameter.mutable_grad() = gradients.narrow(0, 0, 3);
    Optimizer optimizer({parameter}, settings_of(kind, 0));
    optimizer.step(kRate);
    EXPECT_LT(whole.narrow(0, 0, 3).max().item<float>(), 1);
    EXPECT_EQ(whole[3].item<float>(), 1);
  }
}

// On CPUs, where LibTorch from 2.4 on has the same fused operations as on GPUs.
TEST(FusedUpdate, TakesTheStepsOfTheOtherWay) {
  if (TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 4)) {
    GTEST_SKIP() << "this LibTorch has no fused updates on CPUs";
  }
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd}) {
    torch::manual_seed(1);
    const at::Tensor start = at::randn({5, 7});
    const std::vector<at::Tensor> ours = {start.clone().requires_grad_(true)};
    const std::vector<at::Tensor> fused = {start.clone().requires_grad_(true)};
    const auto settings = settings_of(kind, 0.1);
    Optimizer optimizer(ours, settings);
    Optimizer::State state = Optimizer(fused, settings).state();
    FusedUpdate update(at::kCPU);
    for (int step = 1; step <= 20; ++step) {
      const double rate = kRate / step;
      set_gradients(ours, {at::randn({5, 7})});
      set_gradients(fused, {ours[0].grad()});
      optimizer.step(rate);
      update.prepare(rate, step);
      update.apply(settings, fused, state.first, state.second);
    }
    EXPECT_TRUE(ours[0].allclose(fused[0], 1e-5, 1e-6))
        << (ours[0] - fused[0]).abs().max().item<float>();
    EXPECT_FALSE(ours[0].allclose(start, 1e-2, 1e-2));
  }
}

TEST(FusedUpdate, GoesOnFromAStepThatItHasNotTaken) {
  if (TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 4)) {
    GTEST_SKIP() << "this LibTorch has no fused updates on CPUs";
  }
  torch::manual_seed(1);
  const at::Tensor start = at::randn({5});
  const std::vector<at::Tensor> ours = {start.clone().requires_grad_(true)};
  const std::vector<at::Tensor> fused = {start.clone().requires_grad_(true)};
  const auto settings = settings_of(OptimizerKind::adam, 0);
  Optimizer optimizer(ours, settings);
  optimizer.state().steps = 10;
  Optimizer::State state = Optimizer(fused, settings).state();
  FusedUpdate update(at::kCPU);
  const at::Tensor gradient = at::randn({5});
  set_gradients(ours, {gradient});
  set_gradients(fused, {gradient});
  optimizer.step(kRate);
  update.prepare(kRate, 11);
  update.apply(settings, fused, state.first, state.second);
  EXPECT_TRUE(ours[0].allclose(fused[0], 1e-5, 1e-6));
}

TEST_F(Snapshots, PutsEverythingBack) {
  torch::manual_seed(1);
  const std::vector<std::string> layers = {"linear 4", "batch_norm", "relu", "linear 3"};
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::sgd}) {
    Trained saved(layers, kind);
    saved.model.forward(at::randn({5, 6}));  // moves the running averages
    const Progress progress{7,   30,   70,  4,
                            1,   2,    20,  18446744073709551615u,
                            3,   1000, 0.5, {{"package", "walks 1.0"}, {"source", ""}},
                            true};
    const std::vector<NamedTensor> others = {{"memory", at::randn({2, 3})},
                                             {"samplers", at::arange(5, at::kByte)}};
    const std::string bytes = packed(saved, progress, others);

    Trained other(layers, kind);
    auto reader = reader_of(bytes);
    const auto [read, read_others] = restore(reader, other.model, other.optimizer);
    EXPECT_EQ(read.epochs, 7);
    EXPECT_EQ(read.samples, 30);
    EXPECT_EQ(read.steps, 70);
    EXPECT_EQ(read.rollouts, 4);
    EXPECT_EQ(read.stage, 1);
    EXPECT_EQ(read.stage_epochs, 2);
    EXPECT_EQ(read.stage_steps, 20);
    EXPECT_EQ(read.seed, 18446744073709551615u);
    EXPECT_EQ(read.world_size, 3);
    EXPECT_EQ(read.training_samples, 1000);
    EXPECT_EQ(read.best_score, 0.5);
    EXPECT_EQ(read.environment, progress.environment);
    EXPECT_TRUE(read.validation_is_left);
    EXPECT_EQ(other.optimizer.state().steps, 1);
    ASSERT_EQ(read_others.size(), 2U);
    EXPECT_TRUE(read_others[0].tensor.equal(others[0].tensor));
    EXPECT_EQ(packed(other, read, read_others), bytes);

    Trained third(layers, kind);
    auto once_more = reader_of(bytes);
    EXPECT_EQ(restore_model(once_more, third.model).steps, 70);
    EXPECT_TRUE(third.model.parameters()[0].tensor.equal(saved.model.parameters()[0].tensor));
  }
}

TEST_F(Snapshots, ACopyOfTheStateStaysAsItIsWhileTrainingGoesOn) {
  Trained trained({"linear 4"}, OptimizerKind::adam);
  const at::Tensor memory = at::ones({3});
  const auto whole = [&] {
    auto state = std::make_shared<TrainedState>(copy_state(trained.model, trained.optimizer));
    return take_snapshot(std::move(state), {}, {{"memory", memory}});
  };
  const auto bytes_of = [](const Snapshot& snapshot) {
    std::string bytes;
    write(snapshot, [&](std::string_view part) { bytes += part; });
    return bytes;
  };
  const Snapshot kept = whole();
  const std::string before = bytes_of(kept);
  for (const auto& each : trained.model.parameters()) each.tensor.detach().fill_(7);
  trained.optimizer.state().first[0].fill_(7);
  trained.optimizer.state().second[0].fill_(7);
  memory.fill_(7);
  EXPECT_EQ(bytes_of(kept), before);
  EXPECT_NE(bytes_of(whole()), before);
}

TEST_F(Snapshots, RemembersThatThereIsNoBestScoreYet) {
  Trained trained({"linear 4"}, OptimizerKind::adam);
  auto reader = reader_of(packed(trained, {}));
  EXPECT_TRUE(std::isnan(restore(reader, trained.model, trained.optimizer).progress.best_score));
}

TEST_F(Snapshots, RefusesOtherModelsAndOptimizersBeforeItRestoresAnything) {
  Trained saved({"linear 4"}, OptimizerKind::adam);
  const auto refusal = [&](Trained&& other) -> std::string {
    auto reader = reader_of(packed(saved, {}));
    const std::string before = packed(other, {});
    try {
      restore(reader, other.model, other.optimizer);
    } catch (const UsageError& mistake) {
      EXPECT_EQ(packed(other, {}), before);
      return std::string(mistake.what()).substr(file_.string().size());
    }
    return "taken";
  };
  EXPECT_EQ(refusal(Trained({"linear 5"}, OptimizerKind::adam)),
            " does not fit: fc1.weight has shape [4, 6] in the checkpoint, [5, 6] in the "
            "experiment's model");
  EXPECT_EQ(refusal(Trained({"linear 4", "linear 4"}, OptimizerKind::adam)),
            " does not fit: it holds a model of 4 tensors, the experiment's has 6");
  EXPECT_EQ(refusal(Trained({"linear 4"}, OptimizerKind::sgd)),
            " does not fit: it holds the state of adam, the experiment's optimizer is sgd");
  EXPECT_EQ(refusal(Trained({"linear 4"}, OptimizerKind::adamw)),
            " does not fit: it holds the state of adam, the experiment's optimizer is adamw");
  EXPECT_EQ(refusal(Trained({"linear 4"}, OptimizerKind::adam)), "taken");
}

/// LibTorch has no 16-bit numbers without a sign.
TEST_F(Snapshots, ATypeThatLibTorchLacksIsRefusedBeforeAnythingIsRestored) {
  Trained saved({"linear 4"}, OptimizerKind::adam);
  const std::string bytes = packed(saved, {});
  const safetensors::Header header = safetensors::parse_header(bytes, bytes.size());
  const auto with_unknown = [&](const std::string& name) {
    std::vector<safetensors::Entry> entries;
    std::string data = bytes.substr(header.size);
    for (auto each : header.entries) {
      if (each.name == name) {
        each.dtype = "U16";
        data.erase(each.begin + (each.end - each.begin) / 2, (each.end - each.begin) / 2);
      }
      safetensors::append(entries, each.name, each.dtype, each.shape);
    }
    if (name == "others.a") {
      safetensors::append(entries, name, "U16", {1});
      data += "xx";
    }
    return safetensors::header_text(entries, header.metadata) + data;
  };
  const auto refusal = [&](const std::string& content, bool with_optimizer) {
    Trained other({"linear 4"}, OptimizerKind::adam);
    const std::string before = packed(other, {});
    auto reader = reader_of(content);
    std::string said = "taken";
    try {
      if (with_optimizer) {
        restore(reader, other.model, other.optimizer);
      } else {
        restore_model(reader, other.model);
      }
    } catch (const UsageError& mistake) {
      said = std::string(mistake.what()).substr(file_.string().size());
    }
    EXPECT_EQ(packed(other, {}), before);
    return said;
  };
  EXPECT_EQ(refusal(with_unknown("model.fc1.bias"), false),
            " does not fit: model.fc1.bias is of type U16, which LibTorch lacks");
  EXPECT_EQ(refusal(with_unknown("others.a"), true),
            " does not fit: others.a is of type U16, which LibTorch lacks");
}

TEST_F(Snapshots, RefusesWhatIsNoCheckpoint) {
  Trained trained({"linear 4"}, OptimizerKind::adam);
  const std::string bytes = packed(trained, {});
  const auto refusal = [&](const std::string& content) -> std::string {
    try {
      auto reader = reader_of(content);
      restore(reader, trained.model, trained.optimizer);
    } catch (const UsageError& mistake) {
      return std::string(mistake.what()).substr(file_.string().size()) + mistake.hint;
    }
    return "taken";
  };
  EXPECT_EQ(refusal(""), " is no checkpoint: it is too short");
  EXPECT_EQ(refusal(bytes.substr(0, 100)), " is no checkpoint: it ends within its header");
  EXPECT_EQ(
      refusal(bytes.substr(0, bytes.size() - 1)).find(" is no checkpoint: its tensors should take"),
      0U);
  EXPECT_EQ(refusal(bytes + "x").find(" is no checkpoint: its tensors should take"), 0U);
  EXPECT_NE(refusal(std::string("PK\3\4") + bytes).find(" of a former format"), std::string::npos);
  EXPECT_NE(refusal(std::string("PK\3\4") + bytes).find("dtool-trainer 0.1.0"), std::string::npos);
  // The length of this header has the first two bytes of such an archive: "PK".
  std::string alike;
  for (std::size_t size = 19'000; alike.size() < 8 + 0x4b50; ++size)
    alike = safetensors::header_text({}, {{"pad", std::string(size, 'x')}});
  ASSERT_EQ(alike.substr(0, 2), "PK");
  EXPECT_EQ(refusal(alike), " does not fit: dtool-trainer has not written it");
  EXPECT_EQ(refusal(safetensors::header_text({}, {{"format", "pt"}})),
            " does not fit: dtool-trainer has not written it");
  EXPECT_EQ(refusal(safetensors::header_text({}, {{"dtool_checkpoint", "2"}})),
            " does not fit: a newer dtool-trainer has written it");
  for (const std::string key : {"\"steps\":\"0\"", "\"seed\":\"0\"", "\"best_score\":\"nan\""}) {
    std::string spoilt = bytes;
    spoilt.replace(spoilt.find(key) + key.size() - 2, 1, "x");
    EXPECT_NE(refusal(spoilt).find("its metadata has no number for "), std::string::npos) << key;
  }
  std::string without = bytes;
  without.replace(without.find("\"optimizer\":") + 1, 9, "optimiser");
  EXPECT_EQ(refusal(without), " does not fit: its metadata has no optimizer");
  Progress twelve;
  twelve.steps = 12;
  std::string later = packed(trained, twelve);
  later.replace(later.find("\"steps\":\"12\"") + 10, 1, "x");
  EXPECT_EQ(refusal(later),
            " does not fit: its metadata has no number for steps that a run can have, but '1x'");
}

/// A part of the file holds many small tensors, and a large tensor lies in several parts.
TEST_F(Snapshots, EveryRankReadsRank0sFileInParts) {
  torch::manual_seed(1);
  const std::vector<std::string> layers = {"linear 3", "linear 1500000", "linear 3"};
  Trained saved(layers, OptimizerKind::sgd);
  const std::vector<NamedTensor> others = {{"samplers", at::arange(5, at::kByte)}};
  write_whole(file_, packed(saved, {}, others));
  const auto expected = saved.model.parameters();
  on_every_rank([&](const Group& group) {
    static std::mutex one_at_a_time;  // LibTorch's default generator
    std::optional<Trained> read;
    {
      const std::lock_guard lock(one_at_a_time);
      read.emplace(layers, OptimizerKind::sgd);
    }
    CheckpointReader reader(group, "all",
                            group.rank == 0 ? CheckpointFile(file_) : CheckpointFile());
    ASSERT_TRUE(reader.has_file());
    EXPECT_EQ(reader.name(), file_.string());
    const auto restored = restore(reader, read->model, read->optimizer);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(read->model.parameters()[i].tensor.equal(expected[i].tensor)) << i;
      EXPECT_TRUE(read->optimizer.state().first[i].equal(saved.optimizer.state().first[i])) << i;
    }
    ASSERT_EQ(restored.others.size(), 1U);
    EXPECT_TRUE(restored.others[0].tensor.equal(others[0].tensor));
    EXPECT_TRUE(reader.read(reader.header().entries[0]).equal(expected[0].tensor)) << "once more";
    EXPECT_FALSE(CheckpointReader(group, "none", CheckpointFile()).has_file());
  });
}

TEST_F(Snapshots, ATensorMayHaveAnotherTypeThanTheFiles) {
  std::vector<safetensors::Entry> entries;
  safetensors::append(entries, "a", "F64", {2});
  safetensors::append(entries, "b", "U16", {1});
  const double values[] = {0.5, -3};
  write_whole(file_, safetensors::header_text(entries, {}) +
                         std::string(reinterpret_cast<const char*>(values), sizeof values) + "xx");
  CheckpointReader reader(alone_, "", CheckpointFile(file_));
  const at::Tensor into = at::zeros({2});
  reader.read(reader.header().entries[0], into);
  EXPECT_TRUE(into.equal(at::tensor({0.5, -3.0}, at::kFloat)));
  EXPECT_THROW(reader.read(reader.header().entries[1]), UsageError);
  EXPECT_THROW(reader.read({"c", "U8", {std::int64_t{1} << 62U}}), UsageError) << "no such memory";
}

TEST_F(Snapshots, ATensorMayHaveOneByte) {
  std::vector<safetensors::Entry> entries;
  for (const char* name : {"a", "b"}) safetensors::append(entries, name, "U8", {});
  auto reader = reader_of(safetensors::header_text(entries, {}) + "xy");
  for (const auto& [each, byte] : {std::pair(0, 'x'), std::pair(1, 'y')}) {
    const auto& entry = reader.header().entries[static_cast<std::size_t>(each)];
    const at::Tensor into = at::zeros({}, at::kByte);
    reader.read(entry, into);
    EXPECT_EQ(into.item<std::uint8_t>(), byte);
  }
}

TEST_F(Snapshots, ATensorMayLieOtherwiseThanTheFiles) {
  std::vector<safetensors::Entry> entries;
  safetensors::append(entries, "a", "F32", {2, 3});
  const float values[] = {1, 2, 3, 4, 5, 6};
  write_whole(file_, safetensors::header_text(entries, {}) +
                         std::string(reinterpret_cast<const char*>(values), sizeof values));
  CheckpointReader reader(alone_, "", CheckpointFile(file_));
  const at::Tensor across = at::zeros({3, 2}).t();
  reader.read(reader.header().entries[0], across);
  EXPECT_TRUE(across.equal(at::arange(1, 7, at::kFloat).view({2, 3})));
}
