// SPDX-License-Identifier: MIT
// Plain operations: all of them together take a hundredth of a training step
// (docs/reinforcement.md).
#include "trainer/reinforcement/ppo_loss.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace dtool::trainer {
namespace {

at::Tensor value_losses(const PpoSettings& settings, const at::Tensor& values,
                        const TakenSteps& taken) {
  const at::Tensor errors = (values - taken.returns).square();
  if (settings.use_clipped_value_loss == ClippedValueLoss::no) return 0.5 * errors;
  const at::Tensor moved = (values - taken.values).clamp(-settings.clip_param, settings.clip_param);
  return 0.5 * at::maximum(errors, (taken.values + moved - taken.returns).square());
}

}  // namespace

PpoLoss ppo_loss(const PpoSettings& settings, const at::Tensor& logits, const at::Tensor& values,
                 const TakenSteps& taken, const at::Tensor& steps) {
  const at::Tensor log_probs = at::log_softmax(logits, -1);
  const at::Tensor of_actions =
      log_probs.gather(-1, taken.actions.to(at::kLong).unsqueeze(-1)).squeeze(-1);
  const at::Tensor log_ratio = of_actions - taken.log_probs;
  const at::Tensor ratio = log_ratio.exp();
  const at::Tensor clipped_ratio = ratio.clamp(1 - settings.clip_param, 1 + settings.clip_param);
  const at::Tensor policy =
      -at::minimum(ratio * taken.advantages, clipped_ratio * taken.advantages).sum();
  const at::Tensor value = value_losses(settings, values, taken).sum();
  const at::Tensor disorder = -(log_probs.exp() * log_probs).sum();
  const at::Tensor loss =
      (policy + settings.value_loss_coef * value - settings.entropy_coef * disorder) / steps;

  const c10::NoGradGuard no_gradients;
  const at::Tensor divergence = (ratio - 1 - log_ratio).sum();
  const at::Tensor beyond = ratio.ne(clipped_ratio).sum();
  return {loss, at::stack({policy.to(at::kDouble), value.to(at::kDouble), disorder.to(at::kDouble),
                           divergence.to(at::kDouble), beyond.to(at::kDouble)})};
}

PpoSums sums_of(const at::Tensor& sums) {
  const at::Tensor numbers = sums.cpu();
  const auto* const number = numbers.data_ptr<double>();
  return {number[0], number[1], number[2], number[3], number[4]};
}

}  // namespace dtool::trainer
