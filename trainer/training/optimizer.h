// SPDX-License-Identifier: MIT
// Adam (Kingma and Ba, https://arxiv.org/abs/1412.6980, algorithm 1), AdamW (Loshchilov and Hutter,
// https://arxiv.org/abs/1711.05101) and SGD with momentum, each in one pass over a parameter.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/settings/experiment.h"
#include "trainer/training/fused_update.h"
#include "trainer/training/update_on_cpu.h"

namespace dtool::trainer {

/// Whether a replayed recording of a step uses the numbers of the current step, or for ever those
/// of the step that was recorded.
enum class Replay { right, stale };

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
    std::vector<at::Tensor> first;   ///< Adam's first moments, SGD's momentum
    std::vector<at::Tensor> second;  ///< Adam's second moments; empty for SGD
  };
  State& state() { return state_; }
  OptimizerKind kind() const { return settings_.kind; }

 private:
  StepFactors factors(double learning_rate) const;
  double clip();
  void step_in_one_pass(std::size_t i, const StepFactors& factors);
  void step_by_operations(std::size_t i, const StepFactors& factors);

  std::vector<at::Tensor> parameters_;
  OptimizerSettings settings_;
  StepFactors factors_{};             ///< the factors of the current step
  std::optional<FusedUpdate> fused_;  ///< the fused update on GPUs
  State state_;
};

}  // namespace dtool::trainer
