// SPDX-License-Identifier: MIT
// Uses two samples, since a batch norm needs more than one for a variance.
#include "trainer/supervised/probe.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

at::Tensor probe_loss(Objective& objective) {
  objective.model().set_mode(Mode::training);
  const DataSet& train = objective.data().train;
  return objective.loss(gather(train, Range{0, std::min<std::int64_t>(2, train.size())}));
}

void keeping_buffers(const Model& model, const std::function<void()>& action) {
  const auto buffers = model.buffers();
  std::vector<at::Tensor> former;
  for (const auto& each : buffers) former.push_back(each.tensor.clone());
  action();
  const c10::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].tensor.copy_(former[i]);
}

std::vector<at::Tensor> trained_parameters(Objective& objective, const Group& group) {
  keeping_buffers(objective.model(), [&] { probe_loss(objective).backward(); });
  std::vector<at::Tensor> trained;
  for (const auto& [name, tensor] : objective.model().parameters()) {
    if (tensor.grad().defined()) {
      trained.push_back(tensor);
    } else if (group.rank == 0) {
      fmt::print("note: the loss does not depend on {}, which stays as it is\n", name);
    }
    tensor.mutable_grad().reset();
  }
  if (trained.empty()) throw UsageError("the loss does not depend on any parameter");
  return trained;
}

}  // namespace dtool::trainer
