// SPDX-License-Identifier: MIT
// The loss of proximal policy optimisation (Schulman et al. 2017,
// https://arxiv.org/abs/1707.06347).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "trainer/reinforcement/ppo_settings.h"

namespace dtool::trainer {

/// The recorded data of a mini-batch's steps; all of one shape, on one device.
struct TakenSteps {
  at::Tensor actions;     ///< uint8
  at::Tensor log_probs;   ///< of the actions, by the policy that chose them
  at::Tensor values;      ///< estimates of the critic at that time
  at::Tensor advantages;  ///< normalised
  at::Tensor returns;
};

/// Sums over the steps of a mini-batch for the log, without gradients.
struct PpoSums {
  double policy_loss = 0;
  double value_loss = 0;
  double entropy = 0;
  double approximate_kl = 0;
  double clipped = 0;  ///< steps whose probability ratio is clipped
};

/// How many numbers these are.
inline constexpr std::int64_t kPpoSums = 5;

struct PpoLoss {
  at::Tensor loss;  ///< a scalar for the backward pass
  at::Tensor sums;  ///< double [kPpoSums], without gradients, on the loss's device; see `sums_of`
};

/// For logits [.., kActions] and values [..] of the current policy. A is the advantage, V the
/// value, R the return. Each loss is a mean over the steps:
///
///   q           = p_new(action) / p_old(action), the probability ratio
///   policy loss = -min(q A, clip(q, 1 - epsilon, 1 + epsilon) A)
///   value loss  = 1/2 max((V - R)^2, (V_old + clip(V - V_old, -epsilon, epsilon) - R)^2)
///   loss        = policy loss + value_loss_coef value loss - entropy_coef entropy
///
/// The policy loss is the paper's equation 7, the loss its equation 9 (both negated). The value
/// loss is AllenAct's; without clipping it is 1/2 (V - R)^2.
///
/// But the sum of the loss is divided by `steps`, a float scalar on the device, not by the number
/// of given steps. With
///
///   steps = (steps of all ranks) / (number of ranks)
///
/// the average of the ranks' gradients is the gradient of the mean over all experience. `clipped`
/// counts the steps with |q - 1| > epsilon. The divergence from the old policy is approximated by
///
///   q - 1 - log q
///
/// (http://joschu.net/blog/kl-approx.html).
PpoLoss ppo_loss(const PpoSettings& settings, const at::Tensor& logits, const at::Tensor& values,
                 const TakenSteps& taken, const at::Tensor& steps);

/// Gives `PpoLoss::sums` (or several added up) their names. Waits for the device.
PpoSums sums_of(const at::Tensor& sums);

}  // namespace dtool::trainer
