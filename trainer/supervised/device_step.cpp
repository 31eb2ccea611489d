// SPDX-License-Identifier: MIT
// Only the last batch's gradients are exchanged: by then the others' are in the sum.
#include "trainer/supervised/device_step.h"

#include <ATen/ATen.h>

namespace dtool::trainer {

std::int64_t samples_of(const std::vector<Batch>& batches) {
  std::int64_t samples = 0;
  for (const Batch& each : batches) samples += each.size();
  return samples;
}

void step_on_device(const std::vector<Batch>& batches, Objective& objective, DataParallel& parallel,
                    Optimizer& optimizer, const at::Tensor& loss) {
  const auto samples = static_cast<double>(samples_of(batches));
  parallel.begin_step();
  loss.zero_();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const at::Tensor mean = objective.loss(batches[i]);
    const double share = static_cast<double>(batches[i].size()) / samples;
    parallel.backward(share == 1 ? mean : mean * share,
                      i + 1 == batches.size() ? AcrossRanks::yes : AcrossRanks::no);
    loss.add_(mean.detach(), share);
  }
  optimizer.apply();
}

}  // namespace dtool::trainer
