// SPDX-License-Identifier: MIT
#include "trainer/reinforcement/advantage_statistics.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace dtool::trainer {

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
