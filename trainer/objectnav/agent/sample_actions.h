// SPDX-License-Identifier: MIT
// Chooses the agents' actions from the policy's logits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace dtool::trainer {

/// Draws an action for each of N samplers from softmax(logits); `first_sampler` is the global
/// number of the first one. Logits are float [N, kActions] on any device. Writes `actions` [N] and
/// their logarithmic probabilities `log_probs` [N]. A sampler's action depends only on its logits,
/// `seed`, its number and `step`.
void sample_actions(const at::Tensor& logits, std::uint64_t seed, std::int64_t first_sampler,
                    std::int64_t step, std::uint8_t* actions, float* log_probs);

}  // namespace dtool::trainer
