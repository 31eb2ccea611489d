// SPDX-License-Identifier: MIT
// An optimizer's step on a parameter in memory, in one pass. `Optimizer` calls it. LibTorch is not
// included, because the compiler's flags for these loops hold for the whole file.
#pragma once

#include <cstdint>

namespace dtool::trainer {

/// Adam: theta -= rate * m / (sqrt(v) * root_correction + epsilon). These are doubles also where
/// the parameters are floats: `1 - beta2` of two floats is wrong in its fifth digit.
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

/// Adam's step. All four have `size` values and do not overlap; `first` and `second` are the
/// averages of the gradient and of its square.
void update_adam(float* parameter, const float* gradient, float* first, float* second,
                 std::int64_t size, StepFactors f);

/// SGD's step. All three have `size` values and do not overlap.
void update_sgd(float* parameter, const float* gradient, float* momentum, std::int64_t size,
                StepFactors f);

}  // namespace dtool::trainer
