// SPDX-License-Identifier: MIT
// The optimizer's step on a GPU: one launch for all parameters. It reads the learning rate and the
// step number from the GPU's memory, so that a recorded step can be replayed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// PyTorch's fused Adam, AdamW and SGD.
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

}  // namespace dtool::trainer
