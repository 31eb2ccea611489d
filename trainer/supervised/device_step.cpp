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

std::vector<at::Tensor> tensors_of(const std::vector<Batch>& batches) {
  std::vector<at::Tensor> tensors;
  for (const Batch& each : batches) tensors.insert(tensors.end(), {each.inputs, each.targets});
  return tensors;
}

std::vector<Batch> batches_in(const std::vector<at::Tensor>& tensors) {
  std::vector<Batch> batches;
  for (std::size_t i = 0; i < tensors.size(); i += 2) {
    batches.push_back({tensors[i], tensors[i + 1]});
  }
  return batches;
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
