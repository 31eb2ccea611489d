// SPDX-License-Identifier: MIT
// Adam (Kingma and Ba, https://arxiv.org/abs/1412.6980, algorithm 1), AdamW (Loshchilov and Hutter,
// https://arxiv.org/abs/1711.05101) and SGD with momentum, each in one pass over a parameter; and
// LAMB for large batches (You et al., https://arxiv.org/abs/1904.00962, algorithm 2).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// Numbers of a step. Adam: theta -= rate * m / (sqrt(v) * root_correction + epsilon). These are
/// doubles also where the parameters are floats: `1 - beta2` of two floats is wrong in its fifth
/// digit.
struct StepFactors {
  double clip;    ///< multiplies every gradient
  double decay;   ///< adds this share of the parameter to its gradient
  double shrink;  ///< multiplies every parameter first (AdamW)
  double beta1;   ///< Adam's beta1, or SGD's momentum
  double beta2;
  double epsilon;
  double rate;             ///< learning rate / (1 - beta1^t), or SGD's learning rate
  double root_correction;  ///< 1 / sqrt(1 - beta2^t)
};

/// PyTorch's fused Adam, AdamW and SGD: a step on a GPU is one launch for all parameters. It reads
/// the learning rate and the step number from the GPU's memory, so that a recorded step can be
/// replayed.
class FusedUpdate {
 public:
  /// Whether this LibTorch can update `parameters` this way: from 2.4 on, for floats on a GPU. (It
  /// also could on CPUs, but optimizer.cpp is faster there and rounds alike on all of them.)
  static bool serves(const std::vector<at::Tensor>& parameters);

  explicit FusedUpdate(at::Device device);

  /// For the next `apply`, which must follow; `steps` counts from 1.
  void prepare(double learning_rate, std::int64_t steps);

  /// Takes the step along the parameters' gradients; `first` and `second` are Optimizer::State's.
  /// It depends on no changing number in the CPU's memory.
  void apply(const OptimizerSettings& settings, const std::vector<at::Tensor>& parameters,
             const std::vector<at::Tensor>& first, const std::vector<at::Tensor>& second);

 private:
  at::Tensor learning_rate_;
  at::Tensor steps_;
  double told_rate_ = 0;          ///< the rate that the GPU has, so that it need not be told again
  std::int64_t steps_there_ = 0;  ///< each `apply` counts one on
};

/// Whether a replayed recording of a step uses the numbers of the current step, or for ever those
/// of the step that was recorded.
enum class Replay { right, stale };

/// Whether the settings' weight decay is for this parameter.
bool decays(const OptimizerSettings& settings, const at::Tensor& parameter);

/// Computes the same numbers as torch.optim (to rounding), and clips as
/// torch.nn.utils.clip_grad_norm_.
class Optimizer {
 public:
  Optimizer(std::vector<at::Tensor> parameters, const OptimizerSettings& settings);

  /// One step along the parameters' gradients, which must be defined and have the parameters'
  /// layout.
  void step(double learning_rate) {
    prepare(learning_rate);
    apply();
  }

  /// The two parts of a step: `prepare` for the numbers that change from step to step, and the
  /// device's work, which can be recorded.
  void prepare(double learning_rate);
  void apply();

  /// For recordings of `apply`.
  Replay replay() const { return fused_ ? Replay::right : Replay::stale; }

  /// The state in a checkpoint. The averages have the shape of their parameter.
  struct State {
    std::int64_t steps = 0;
    std::vector<at::Tensor> first;   ///< the first moments, SGD's momentum
    std::vector<at::Tensor> second;  ///< the second moments; empty for SGD
  };
  State& state() { return state_; }
  OptimizerKind kind() const { return settings_.kind; }

 private:
  StepFactors factors(double learning_rate) const;
  StepFactors factors_of(const at::Tensor& parameter, StepFactors factors) const;
  double clip();
  void step_in_one_pass(std::size_t i, const StepFactors& factors);
  void step_by_operations(std::size_t i, const StepFactors& factors);
  void step_by_trust(std::size_t i, const StepFactors& factors);

  std::vector<at::Tensor> parameters_;
  OptimizerSettings settings_;
  StepFactors factors_{};             ///< the factors of the current step
  std::optional<FusedUpdate> fused_;  ///< the fused update on GPUs
  State state_;
};

}  // namespace dtool::trainer
