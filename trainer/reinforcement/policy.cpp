// SPDX-License-Identifier: MIT
// Drawing an action inverts the cumulative distribution at one random number per sampler and step.
#include "trainer/reinforcement/policy.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "trainer/reinforcement/mini_batches.h"

namespace dtool::trainer {
namespace {

constexpr std::uint64_t kPurpose = 0x616374696f6e7320;  // "actions "

at::Tensor on_cpu(const at::Tensor& logits) {
  return logits.detach().to(at::kCPU, at::kFloat).contiguous();
}

struct Choice {
  float action;
  float log_prob;
};

/// `weights` is room for as many numbers as there are logits.
Choice choose(std::span<const float> logits, double share, std::span<float> weights) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) sum += weights[i] = std::exp(logits[i] - highest);
  // Rounding may leave the last sum below the share: then it is the last action that is possible.
  double below = 0;
  std::size_t action = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (weights[i] == 0) continue;
    action = i;
    below += weights[i];
    if (share * sum < below) break;
  }
  return {static_cast<float>(action), logits[action] - highest - static_cast<float>(std::log(sum))};
}

}  // namespace

void sample_actions(const at::Tensor& logits, std::uint64_t seed, std::int64_t first_sampler,
                    std::int64_t step, float* actions, float* log_probs) {
  const at::Tensor rows = on_cpu(logits);
  const auto count = static_cast<std::size_t>(rows.size(1));
  std::vector<float> weights(count);
  const float* next = rows.data_ptr<float>();
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    const double share = random_share(kPurpose, seed, static_cast<std::uint64_t>(first_sampler + i),
                                      static_cast<std::uint64_t>(step));
    const auto [action, log_prob] = choose({next, count}, share, weights);
    next += count;
    actions[i] = action;
    log_probs[i] = log_prob;
  }
}

}  // namespace dtool::trainer
