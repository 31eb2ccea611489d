// SPDX-License-Identifier: MIT
#include "trainer/reinforcement/gae.h"

#include <cassert>

namespace dtool::trainer {

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

}  // namespace dtool::trainer
