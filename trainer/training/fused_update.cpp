// SPDX-License-Identifier: MIT
// Makes the same calls as _fused_adam in
// https://github.com/pytorch/pytorch/blob/main/torch/optim/adam.py.
#include "trainer/training/fused_update.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/version.h>

#include <algorithm>
#include <stdexcept>

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
#define DTOOL_HAS_FUSED_UPDATES
#endif

namespace dtool::trainer {

bool FusedUpdate::serves([[maybe_unused]] const std::vector<at::Tensor>& parameters) {
#ifdef DTOOL_HAS_FUSED_UPDATES
  return std::all_of(parameters.begin(), parameters.end(), [](const at::Tensor& each) {
    return each.is_cuda() && each.scalar_type() == at::kFloat && each.is_contiguous();
  });
#else
  return false;
#endif
}

FusedUpdate::FusedUpdate(at::Device device)
    : learning_rate_(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))),
      steps_(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))) {}

void FusedUpdate::prepare(double learning_rate, std::int64_t steps) {
  if (learning_rate != told_rate_) learning_rate_.fill_(learning_rate);
  if (steps != steps_there_ + 1) steps_.fill_(steps - 1);
  told_rate_ = learning_rate;
  steps_there_ = steps;
}

void FusedUpdate::apply([[maybe_unused]] const OptimizerSettings& settings,
                        const std::vector<at::Tensor>& parameters,
                        [[maybe_unused]] const std::vector<at::Tensor>& first,
                        [[maybe_unused]] const std::vector<at::Tensor>& second) {
  const c10::NoGradGuard no_gradients;
  steps_.add_(1);
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& each : parameters) {
    values.push_back(each.detach());
    gradients.push_back(each.grad());
  }
#ifdef DTOOL_HAS_FUSED_UPDATES
  if (settings.kind == OptimizerKind::sgd) {
    at::_fused_sgd_(values, gradients, first, settings.weight_decay, settings.momentum,
                    learning_rate_, /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false,
                    /*is_first_step=*/false);
    return;
  }
  const std::vector<at::Tensor> steps(parameters.size(), steps_);
  const at::TensorList no_maxima;  // AMSGrad's
  const auto update = [&](auto function) {
    function(values, gradients, first, second, no_maxima, steps, learning_rate_, settings.beta1,
             settings.beta2, settings.weight_decay, settings.epsilon, /*amsgrad=*/false,
             /*maximize=*/false);
  };
  if (settings.kind == OptimizerKind::adam) {
    update([](auto&&... arguments) { at::_fused_adam_(arguments...); });
  } else {
    update([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
  }
#else
  throw std::logic_error("this LibTorch has no fused updates");
#endif
}

}  // namespace dtool::trainer
