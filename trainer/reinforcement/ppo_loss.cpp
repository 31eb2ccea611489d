// SPDX-License-Identifier: MIT
// Plain operations: all of them together take a hundredth of a training step
// (docs/reinforcement.md).
#include "trainer/reinforcement/ppo_loss.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace dtool::trainer {

namespace {

at::Tensor value_losses(const PpoSettings& settings, const at::Tensor& values,
                        const TakenSteps& taken) {
  const at::Tensor errors = (values - taken.returns).square();
  if (!settings.use_clipped_value_loss) return 0.5 * errors;
  const at::Tensor moved = (values - taken.values).clamp(-settings.clip_param, settings.clip_param);
  return 0.5 * at::maximum(errors, (taken.values + moved - taken.returns).square());
}

}  // namespace

PpoLoss ppo_loss(const PpoSettings& settings, const ActionDistribution& policy,
                 const at::Tensor& values, const TakenSteps& taken, const at::Tensor& steps) {
  const at::Tensor log_ratio = policy.log_probs(taken.actions) - taken.log_probs;
  const at::Tensor ratio = log_ratio.exp();
  const at::Tensor clipped_ratio = ratio.clamp(1 - settings.clip_param, 1 + settings.clip_param);
  const at::Tensor surrogate =
      -at::minimum(ratio * taken.advantages, clipped_ratio * taken.advantages).sum();
  const at::Tensor value = value_losses(settings, values, taken).sum();
  const at::Tensor disorder = policy.entropies().sum();
  const at::Tensor loss =
      (surrogate + settings.value_loss_coef * value - settings.entropy_coef * disorder) / steps;

  const c10::NoGradGuard no_gradients;
  const at::Tensor divergence = (ratio - 1 - log_ratio).sum();
  const at::Tensor beyond = ratio.ne(clipped_ratio).sum();
  return {loss,
          at::stack({surrogate.to(at::kDouble), value.to(at::kDouble), disorder.to(at::kDouble),
                     divergence.to(at::kDouble), beyond.to(at::kDouble)})};
}

PpoSums sums_of(const at::Tensor& sums) {
  const at::Tensor numbers = sums.cpu();
  const auto* const number = numbers.data_ptr<double>();
  return {number[0], number[1], number[2], number[3], number[4]};
}

void estimate_advantages(const Experience& experience, std::int64_t steps, const Discount& discount,
                         at::Tensor& advantages, at::Tensor& returns) {
  const auto samplers = experience.rewards.size(1);
  assert(experience.values.size(0) > steps && experience.keep.size(0) > steps);
  assert(advantages.is_contiguous() && returns.is_contiguous());
  const auto gamma = static_cast<float>(discount.gamma);
  const auto decay = static_cast<float>(discount.gamma * discount.lambda);
  for (std::int64_t t = steps - 1; t >= 0; --t) {
    const float* const reward = experience.rewards.data_ptr<float>() + t * samplers;
    const float* const value = experience.values.data_ptr<float>() + t * samplers;
    const float* const keep = experience.keep.data_ptr<float>() + (t + 1) * samplers;
    float* const advantage = advantages.data_ptr<float>() + t * samplers;
    float* const target = returns.data_ptr<float>() + t * samplers;
    for (std::int64_t i = 0; i < samplers; ++i) {
      const float later = t + 1 < steps ? advantage[samplers + i] : 0;
      const float delta = reward[i] + gamma * keep[i] * value[samplers + i] - value[i];
      advantage[i] = delta + decay * keep[i] * later;
      target[i] = advantage[i] + value[i];
    }
  }
}

std::vector<double> advantage_sums(const at::Tensor& advantages) {
  const at::Tensor values = advantages.to(at::kDouble);
  return {static_cast<double>(values.numel()), values.sum().item<double>(),
          values.square().sum().item<double>()};
}

AdvantageStatistics statistics_of(const std::vector<double>& sums) {
  const double mean = sums[1] / sums[0];
  // Rounding may leave a little less than nothing if all are equal.
  return {sums[0], mean, std::sqrt(std::max(0.0, sums[2] / sums[0] - mean * mean))};
}

void normalise_advantages(const AdvantageStatistics& statistics, at::Tensor& advantages) {
  advantages.sub_(statistics.mean).div_(statistics.standard_deviation + 1e-5);
}

}  // namespace dtool::trainer
