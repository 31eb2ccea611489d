// SPDX-License-Identifier: MIT
// Generalized advantage estimation (Schulman et al. 2016, https://arxiv.org/abs/1506.02438).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace dtool::trainer {

/// T steps of N samplers; all float, contiguous and on the CPU.
struct Experience {
  at::Tensor rewards;  ///< [at least T, N]
  at::Tensor values;   ///< [at least T + 1, N]
  at::Tensor keep;     ///< [at least T + 1, N]: 0 if that observation begins an episode, else 1
};

struct Discount {
  double gamma;
  double lambda;
};

/// Writes advantages and returns to the first `steps` rows of `advantages` and `returns`. Both have
/// the shape [at least T, N]. The advantages are
///
///   A_t     = delta_t + gamma lambda keep_{t+1} A_{t+1}
///   delta_t = r_t + gamma keep_{t+1} V_{t+1} - V_t
///
/// with A = 0 after the last step (the paper's equation 16, summed from the end). The returns are
///
///   R_t = A_t + V_t
void estimate_advantages(const Experience& experience, std::int64_t steps, const Discount& discount,
                         at::Tensor& advantages, at::Tensor& returns);

}  // namespace dtool::trainer
