// SPDX-License-Identifier: MIT
// An optimizer's step on a parameter in memory, in one pass. `Optimizer` calls it. LibTorch is not
// included, because the compiler's flags for these loops hold for the whole file.
#pragma once

#include <cstdint>

namespace dtool::trainer {

/// In the parameters' own precision. Adam: theta -= rate * m / (sqrt(v) * root_correction +
/// epsilon).
struct StepFactors {
  float clip;    ///< multiplies every gradient
  float decay;   ///< adds this share of the parameter to its gradient
  float shrink;  ///< multiplies every parameter first (AdamW)
  float beta1;   ///< or SGD's momentum
  float beta2;
  float epsilon;
  float rate;             ///< learning rate / (1 - beta1^t), or SGD's learning rate
  float root_correction;  ///< 1 / sqrt(1 - beta2^t)
};

/// Adam's step. All four have `size` values and do not overlap; `first` and `second` are the
/// averages of the gradient and of its square.
void update_adam(float* parameter, const float* gradient, float* first, float* second,
                 std::int64_t size, StepFactors f);

/// SGD's step. All three have `size` values and do not overlap.
void update_sgd(float* parameter, const float* gradient, float* momentum, std::int64_t size,
                StepFactors f);

}  // namespace dtool::trainer
