// SPDX-License-Identifier: MIT
// Advantages normalised over the experience of all ranks, as DD-PPO does
// (https://arxiv.org/abs/1911.00357).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace dtool::trainer {

/// Statistics over all ranks' steps; a rollout that was cut short counts with its actual steps.
struct AdvantageStatistics {
  double count = 0;
  double mean = 0;
  double standard_deviation = 0;  ///< of the whole population: divided by `count`
};

/// Sums that can be added over ranks: count, sum, sum of squares. `advantages` are floats of any
/// shape.
std::vector<double> advantage_sums(const at::Tensor& advantages);

AdvantageStatistics statistics_of(const std::vector<double>& sums);

/// Computes (A - mean) / (standard deviation + 1e-5) in place, as AllenAct does.
void normalise_advantages(const AdvantageStatistics& statistics, at::Tensor& advantages);

}  // namespace dtool::trainer
