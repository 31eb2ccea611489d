// What proximal policy optimisation makes small (Schulman et al. 2017,
// https://arxiv.org/abs/1707.06347).
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/reinforcement/ppo_settings.h"

namespace dtool::trainer {

/// What is known of the steps of a mini-batch since they were taken; all of one shape, on one
/// device.
struct TakenSteps {
  at::Tensor actions;     ///< uint8
  at::Tensor log_probs;   ///< of the actions, by the policy that took them
  at::Tensor values;      ///< as the critic of then had them
  at::Tensor advantages;  ///< normalised
  at::Tensor returns;
};

/// What is told of a mini-batch: sums over its steps, without gradients.
struct PpoSums {
  double policy_loss = 0;
  double value_loss = 0;
  double entropy = 0;
  double approximate_kl = 0;
  double clipped = 0;  ///< steps whose probability ratio is clipped
};

struct PpoLoss {
  at::Tensor loss;  ///< a scalar to go backward from
  at::Tensor sums;  ///< double [5], without gradients, on the loss's device; see `sums_of`
};

/// For logits [.., kActions] and values [..] of the policy as it is now. With the probability ratio
/// q = p_new(action) / p_old(action) and A the advantage, each a mean over the steps:
///   policy loss = -min(q A, clip(q, 1 - epsilon, 1 + epsilon) A)           (the paper's equation
///   7) value loss  = 1/2 max((V - R)^2, (V_old + clip(V - V_old, -epsilon, epsilon) - R)^2), or
///                 without clipping 1/2 (V - R)^2                           (as AllenAct's)
///   loss        = policy loss + value_loss_coef value loss - entropy_coef entropy    (equation 9)
/// but divided by `steps` instead of the number of steps given: with all ranks' steps over the
/// number of ranks, the average of the ranks' gradients is that of the mean over all experience.
/// The divergence from the old policy is approximated by q - 1 - log q
/// (http://joschu.net/blog/kl-approx.html), and `clipped` counts the steps with |q - 1| > epsilon.
PpoLoss ppo_loss(const PpoSettings& settings, const at::Tensor& logits, const at::Tensor& values,
                 const TakenSteps& taken, double steps);

/// The names of `PpoLoss::sums`, or of several added up. Waits for the device.
PpoSums sums_of(const at::Tensor& sums);

}  // namespace dtool::trainer
