// SPDX-License-Identifier: MIT
// Drawing a choice inverts the cumulative distribution at one random number for each sampler, step
// and value. A value of a box is drawn by Marsaglia's polar form of Box and Muller's way, which
// needs no sine.
#include "trainer/reinforcement/actions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "trainer/data/sampler.h"

namespace dtool::trainer {
namespace {

constexpr std::uint64_t kPurpose = 0x616374696f6e7320;  // "actions "

/// The logarithm of the square root of 2 pi.
const double kLogRoot = 0.5 * std::log(2 * std::numbers::pi);

at::Tensor on_cpu(const at::Tensor& parameters) {
  return parameters.detach().to(at::kCPU, at::kFloat).contiguous();
}

/// What an action's random numbers depend on.
struct Draw {
  std::uint64_t seed;
  std::uint64_t sampler;
  std::uint64_t step;
};

struct Drawn {
  float value;
  float log_prob;
};

/// `weights` is room for as many numbers as there are logits.
Drawn choose(std::span<const float> logits, double share, std::span<float> weights) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) sum += weights[i] = std::exp(logits[i] - highest);
  // Rounding may leave the last sum below the share: then it is the last choice that is possible.
  double below = 0;
  std::size_t choice = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (weights[i] == 0) continue;
    choice = i;
    below += weights[i];
    if (share * sum < below) break;
  }
  return {static_cast<float>(choice), logits[choice] - highest - static_cast<float>(std::log(sum))};
}

double gaussian(Random& random) {
  for (;;) {
    const double x = random.between(-1, 1), y = random.between(-1, 1);
    const double square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * std::log(square) / square);
  }
}

Drawn draw_around(double mean, double log_deviation, double noise) {
  const auto value = static_cast<float>(mean + std::exp(log_deviation) * noise);
  const double off = (value - mean) * std::exp(-log_deviation);  // the rounded value's
  return {value, static_cast<float>(-0.5 * off * off - log_deviation - kLogRoot)};
}

/// Draws the values of one action from `parameters`, and returns its log-probability.
float draw_action(const ActionSpec& spec, const float* parameters, const Draw& draw, float* action,
                  std::vector<float>& weights) {
  float log_prob = 0;
  const auto values = static_cast<std::size_t>(spec.values());
  for (std::size_t i = 0; i < values; ++i) {
    const std::uint64_t purpose = kPurpose + i;
    Drawn drawn{};
    if (spec.is_box()) {
      Random random(random_bits(purpose, draw.seed, draw.sampler, draw.step));
      drawn = draw_around(parameters[i], parameters[values + i], gaussian(random));
    } else {
      const auto count = static_cast<std::size_t>(spec.choices[i]);
      weights.resize(std::max(weights.size(), count));
      drawn = choose({parameters, count}, random_share(purpose, draw.seed, draw.sampler, draw.step),
                     weights);
      parameters += count;
    }
    action[i] = drawn.value;
    log_prob += drawn.log_prob;
  }
  return log_prob;
}

}  // namespace

ActionDistribution::ActionDistribution(const ActionSpec& spec, const at::Tensor& parameters) {
  if (spec.is_box()) {
    means_ = parameters.narrow(-1, 0, spec.values());
    log_deviations_ = parameters.narrow(-1, spec.values(), spec.values());
    return;
  }
  std::int64_t first = 0;
  for (const std::int64_t count : spec.choices) {
    choices_.push_back(at::log_softmax(parameters.narrow(-1, first, count), -1));
    first += count;
  }
}

at::Tensor ActionDistribution::log_probs(const at::Tensor& actions) const {
  if (choices_.empty()) {
    const at::Tensor off = (actions - means_) * (-log_deviations_).exp();
    return (-0.5 * off.square() - log_deviations_ - kLogRoot).sum(-1);
  }
  const at::Tensor chosen = actions.to(at::kLong);
  at::Tensor sum;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const at::Tensor of_choice =
        choices_[i].gather(-1, chosen.narrow(-1, static_cast<std::int64_t>(i), 1)).squeeze(-1);
    sum = sum.defined() ? sum + of_choice : of_choice;
  }
  return sum;
}

at::Tensor ActionDistribution::entropies() const {
  if (choices_.empty()) return (log_deviations_ + (0.5 + kLogRoot)).sum(-1);
  at::Tensor sum;
  for (const at::Tensor& each : choices_) {
    const at::Tensor of_choice = -(each.exp() * each).sum(-1);
    sum = sum.defined() ? sum + of_choice : of_choice;
  }
  return sum;
}

void sample_actions(const at::Tensor& parameters, const ActionSpec& spec, std::uint64_t seed,
                    std::int64_t first_sampler, std::int64_t step, float* actions,
                    float* log_probs) {
  const at::Tensor rows = on_cpu(parameters);
  std::vector<float> weights;
  const float* next = rows.data_ptr<float>();
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    const Draw draw{seed, static_cast<std::uint64_t>(first_sampler + i),
                    static_cast<std::uint64_t>(step)};
    log_probs[i] = draw_action(spec, next, draw, actions, weights);
    next += rows.size(1);
    actions += spec.values();
  }
}

}  // namespace dtool::trainer
