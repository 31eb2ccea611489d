// Advantages normalised over the experience of all ranks, as DD-PPO does
// (https://arxiv.org/abs/1911.00357).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace dtool::trainer {

/// Of all ranks' steps; a rollout that was cut short counts by the steps it has.
struct AdvantageStatistics {
  double count = 0;
  double mean = 0;
  double standard_deviation = 0;  ///< of the whole population: divided by `count`
};

/// Sums that add up over ranks: count, sum, sum of squares. `advantages` are floats of any shape.
std::vector<double> advantage_sums(const at::Tensor& advantages);

AdvantageStatistics statistics_of(const std::vector<double>& sums);

/// (A - mean) / (standard deviation + 1e-5), as AllenAct has it, in place.
void normalise_advantages(const AdvantageStatistics& statistics, at::Tensor& advantages);

}  // namespace dtool::trainer
