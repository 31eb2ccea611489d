// SPDX-License-Identifier: MIT
// A policy's distribution over actions: how likely they are, how uncertain it is, and how they are
// drawn.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/reinforcement/environments.h"

namespace dtool::trainer {

/// The distributions that `parameters` [.., spec.parameters()] describe, differentiable in them:
/// for each choice softmax of its logits; for a value of a box a Gaussian. An action's values are
/// independent of each other.
class ActionDistribution {
 public:
  ActionDistribution(const ActionSpec& spec, const at::Tensor& parameters);

  /// The logarithm of the probability, or of its density, of `actions` [.., spec.values()]: [..].
  at::Tensor log_probs(const at::Tensor& actions) const;
  /// The sum of the values' entropies: [..].
  at::Tensor entropies() const;

 private:
  std::vector<at::Tensor> choices_;  ///< [.., n] each: the logarithms of the probabilities
  at::Tensor means_;                 ///< [.., values], of a box
  at::Tensor log_deviations_;        ///< [.., values], of a box
};

/// Draws an action for each of N samplers; `first_sampler` is the global number of the first one.
/// Parameters are float [N, spec.parameters()] on any device. Writes `actions` [N, spec.values()]
/// and the logarithms of their probabilities, `log_probs` [N]. A sampler's action depends only on
/// its parameters, `seed`, its number and `step`.
void sample_actions(const at::Tensor& parameters, const ActionSpec& spec, std::uint64_t seed,
                    std::int64_t first_sampler, std::int64_t step, float* actions,
                    float* log_probs);

}  // namespace dtool::trainer
