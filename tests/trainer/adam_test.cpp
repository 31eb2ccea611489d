// Adam against PyTorch's own, and a checkpoint's way there and back.
#include "trainer/adam.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include "trainer/classifier.h"
#include "trainer/snapshot.h"
#include "trainer/usage_error.h"

using namespace dtool::trainer;

namespace {

constexpr Adam::Rates kRates{1e-2, 0.9, 0.999, 1e-8};

void set_gradients(const std::vector<at::Tensor>& parameters,
                   const std::vector<at::Tensor>& gradients) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parameters[i].mutable_grad() = gradients[i].clone();
}

}  // namespace

TEST(Adam, TakesPyTorchsStepsOnEveryPath) {
  torch::manual_seed(1);
  for (const auto type : {at::kFloat, at::kDouble}) {  // one pass, and tensor operations
    const at::Tensor start = at::randn({37, 5}, at::TensorOptions(type));
    const at::Tensor ours = start.clone().requires_grad_(true);
    const at::Tensor theirs = start.clone().requires_grad_(true);
    Adam adam({ours}, kRates);
    torch::optim::Adam reference(std::vector<at::Tensor>{theirs}, torch::optim::AdamOptions(1e-2));
    for (int step = 0; step < 20; ++step) {
      const at::Tensor gradient = at::randn_like(start);
      set_gradients({ours, theirs}, {gradient, gradient});
      adam.step();
      reference.step();
    }
    EXPECT_TRUE(at::allclose(ours.detach(), theirs.detach(), 1e-5, 1e-6))
        << (ours - theirs).abs().max();
    EXPECT_FALSE(at::allclose(ours.detach(), start));
  }
}

TEST(Snapshot, PutsEverythingBack) {
  torch::manual_seed(1);
  Perceptron model(6, {4, 3}, 2);
  Adam adam(model.parameters(), kRates);
  for (const auto& each : model.parameters()) each.mutable_grad() = at::randn_like(each);
  adam.step();
  const std::string bytes = pack(model, adam, {7, 70, 18446744073709551615u, 3});
  const at::Tensor next_random = at::randn({3});

  Perceptron other(6, {4, 3}, 2);
  Adam other_adam(other.parameters(), kRates);
  const Progress progress = unpack(bytes, "x.pt", other, other_adam);
  EXPECT_EQ(progress.epochs, 7);
  EXPECT_EQ(progress.steps, 70);
  EXPECT_EQ(progress.seed, 18446744073709551615u);
  EXPECT_EQ(progress.world_size, 3);
  EXPECT_EQ(other_adam.state().steps, 1);
  EXPECT_TRUE(at::randn({3}).equal(next_random));
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    EXPECT_TRUE(model.parameters()[i].equal(other.parameters()[i]));
    EXPECT_TRUE(adam.state().second_moments[i].equal(other_adam.state().second_moments[i]));
  }
}

TEST(Snapshot, RefusesAModelOfAnotherShapeAndNonsense) {
  Perceptron model(6, {4}, 2);
  Adam adam(model.parameters(), kRates);
  const std::string bytes = pack(model, adam, {});
  Perceptron wider(6, {5}, 2);
  Adam wider_adam(wider.parameters(), kRates);
  EXPECT_THROW(unpack(bytes, "x.pt", wider, wider_adam), UsageError);
  Perceptron deeper(6, {4, 4}, 2);
  Adam deeper_adam(deeper.parameters(), kRates);
  EXPECT_THROW(unpack(bytes, "x.pt", deeper, deeper_adam), UsageError);
  EXPECT_THROW(unpack(bytes.substr(0, bytes.size() / 2), "x.pt", model, adam), UsageError);
}
