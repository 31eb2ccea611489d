// From the policy's logits to what the agents do.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace dtool::trainer {

/// Draws an action for each of N samplers, the first of which is number `first_sampler` of all
/// ranks', from softmax(logits); logits are float [N, kActions] on any device. Writes `actions` [N]
/// and their logarithmic probabilities `log_probs` [N]. What a sampler is given depends on its
/// logits, `seed`, its number and `step` only.
void sample_actions(const at::Tensor& logits, std::uint64_t seed, std::int64_t first_sampler,
                    std::int64_t step, std::uint8_t* actions, float* log_probs);

}  // namespace dtool::trainer
