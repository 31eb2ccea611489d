// SPDX-License-Identifier: MIT
// The loss of proximal policy optimisation (Schulman et al. 2017,
// https://arxiv.org/abs/1707.06347), and the advantages that it needs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/reinforcement/actions.h"
#include "trainer/reinforcement/ppo_settings.h"

namespace dtool::trainer {

/// The recorded data of a mini-batch's steps; float, all of one shape but for the actions, on one
/// device.
struct TakenSteps {
  at::Tensor actions;     ///< [.., values of an action]
  at::Tensor log_probs;   ///< the log-probabilities of the actions, by the policy that chose them
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

/// For actions [..] and values [..] of the current policy. A is the advantage, V the
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
PpoLoss ppo_loss(const PpoSettings& settings, const ActionDistribution& policy,
                 const at::Tensor& values, const TakenSteps& taken, const at::Tensor& steps);

/// Gives `PpoLoss::sums` (or several added up) their names. Waits for the device.
PpoSums sums_of(const at::Tensor& sums);

// Generalized advantage estimation (Schulman et al. 2016, https://arxiv.org/abs/1506.02438).

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

// Advantages normalised over the experience of all ranks, as DD-PPO does
// (https://arxiv.org/abs/1911.00357).

/// Statistics over all ranks' steps; a rollout that was cut short counts with its actual steps.
struct AdvantageStatistics {
  double count = 0;
  double mean = 0;
  double standard_deviation = 0;  ///< the deviation of the whole population: divided by `count`
};

/// Sums that can be added over ranks: count, sum, sum of squares. `advantages` are floats of any
/// shape.
std::vector<double> advantage_sums(const at::Tensor& advantages);

AdvantageStatistics statistics_of(const std::vector<double>& sums);

/// Computes (A - mean) / (standard deviation + 1e-5) in place, as AllenAct does.
void normalise_advantages(const AdvantageStatistics& statistics, at::Tensor& advantages);

}  // namespace dtool::trainer
