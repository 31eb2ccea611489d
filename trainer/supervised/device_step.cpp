// SPDX-License-Identifier: MIT
// Only the last batch's gradients are exchanged: by then the others' are in the sum.
#include "trainer/supervised/device_step.h"

#include <ATen/ATen.h>

namespace dtool::trainer {

std::int64_t samples_of(const std::vector<DrawnBatch>& batches) {
  std::int64_t samples = 0;
  for (const DrawnBatch& each : batches) samples += each.size();
  return samples;
}

std::vector<at::Tensor> tensors_of(const std::vector<DrawnBatch>& batches) {
  std::vector<at::Tensor> tensors;
  for (const DrawnBatch& each : batches) {
    tensors.insert(tensors.end(), each.tensors.begin(), each.tensors.end());
  }
  return tensors;
}

std::vector<DrawnBatch> drawn_in(const std::vector<at::Tensor>& tensors, std::size_t count) {
  const auto each = static_cast<std::ptrdiff_t>(tensors.size() / count);
  std::vector<DrawnBatch> batches;
  for (auto next = tensors.begin(); next != tensors.end(); next += each) {
    batches.push_back({{next, next + each}});
  }
  return batches;
}

void step_on_device(const std::vector<DrawnBatch>& batches, Objective& objective,
                    DataParallel& parallel, Optimizer& optimizer, const at::Tensor& loss) {
  const auto samples = static_cast<double>(samples_of(batches));
  parallel.begin_step();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const at::Tensor mean = objective.loss(batches[i].from(objective.data().train));
    const double share = static_cast<double>(batches[i].size()) / samples;
    const at::Tensor part = share == 1 ? mean : mean * share;
    const bool is_last = i + 1 == batches.size();
    parallel.backward(part, is_last ? AcrossRanks::yes : AcrossRanks::no);
    if (i == 0) {
      loss.copy_(part.detach());
    } else {
      loss.add_(part.detach());
    }
  }
  optimizer.apply();
}

}  // namespace dtool::trainer
