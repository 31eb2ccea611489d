// SPDX-License-Identifier: MIT
// On CPUs torch::optim::Adam passes over the memory eight times and launches as many operations.
// For a small network that takes longer than its gradients. The compiler's flags for this file are
// those of the loops.
#include "trainer/training/optimizer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
#define DTOOL_HAS_FUSED_UPDATES
#endif

namespace dtool::trainer {
namespace {

// The loops use wider registers if the processor has them. Every operation is rounded as in IEEE
// 754 and none is fused, so that machines with different processors keep equal parameters.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DTOOL_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define DTOOL_WIDE
#endif

/// Adam's step. All four have `size` values and do not overlap; `first` and `second` are the
/// averages of the gradient and of its square.
DTOOL_WIDE
void update_adam(float* __restrict parameter, const float* __restrict gradient,
                 float* __restrict first, float* __restrict second, std::int64_t size,
                 StepFactors f) {
  const auto clip = static_cast<float>(f.clip);
  const auto decay = static_cast<float>(f.decay);
  const auto shrink = static_cast<float>(f.shrink);
  const auto beta1 = static_cast<float>(f.beta1);
  const auto rest1 = static_cast<float>(1 - f.beta1);
  const auto beta2 = static_cast<float>(f.beta2);
  const auto rest2 = static_cast<float>(1 - f.beta2);
  const auto epsilon = static_cast<float>(f.epsilon);
  const auto rate = static_cast<float>(f.rate);
  const auto root_correction = static_cast<float>(f.root_correction);
  for (std::int64_t i = 0; i < size; ++i) {
    const float p = parameter[i] * shrink;
    const float g = gradient[i] * clip + decay * p;
    first[i] = beta1 * first[i] + rest1 * g;
    second[i] = beta2 * second[i] + rest2 * (g * g);
    parameter[i] = p - rate * first[i] / (std::sqrt(second[i]) * root_correction + epsilon);
  }
}

/// SGD's step. All three have `size` values and do not overlap.
DTOOL_WIDE
void update_sgd(float* __restrict parameter, const float* __restrict gradient,
                float* __restrict momentum, std::int64_t size, StepFactors f) {
  const auto clip = static_cast<float>(f.clip);
  const auto decay = static_cast<float>(f.decay);
  const auto beta1 = static_cast<float>(f.beta1);
  const auto rate = static_cast<float>(f.rate);
  for (std::int64_t i = 0; i < size; ++i) {
    momentum[i] = beta1 * momentum[i] + (gradient[i] * clip + decay * parameter[i]);
    parameter[i] -= rate * momentum[i];
  }
}

bool in_one_pass(const at::Tensor& parameter, const at::Tensor& gradient) {
  return parameter.device().is_cpu() && parameter.scalar_type() == at::kFloat &&
         parameter.is_contiguous() && gradient.is_contiguous();
}

}  // namespace

Optimizer::Optimizer(std::vector<at::Tensor> parameters, const OptimizerSettings& settings)
    : parameters_(std::move(parameters)), settings_(settings) {
  if (settings_.kind != OptimizerKind::lamb && FusedUpdate::serves(parameters_))
    fused_.emplace(parameters_.at(0).device());
  for (const at::Tensor& each : parameters_) {
    state_.first.push_back(at::zeros_like(each.detach(), at::MemoryFormat::Contiguous));
    if (settings_.kind == OptimizerKind::sgd) continue;
    state_.second.push_back(at::zeros_like(each.detach(), at::MemoryFormat::Contiguous));
  }
}

StepFactors Optimizer::factors(double learning_rate) const {
  const bool decoupled = settings_.kind == OptimizerKind::adamw;
  const double decay = settings_.weight_decay;
  StepFactors f{};
  f.clip = 1;
  f.decay = decoupled ? 0 : decay;
  f.shrink = decoupled ? 1 - learning_rate * decay : 1;
  if (settings_.kind == OptimizerKind::sgd) {
    f.beta1 = settings_.momentum;
    f.rate = learning_rate;
    return f;
  }
  const auto t = static_cast<double>(state_.steps);
  f.beta1 = settings_.beta1;
  f.beta2 = settings_.beta2;
  f.epsilon = settings_.epsilon;
  f.rate = learning_rate / (1 - std::pow(settings_.beta1, t));
  if (settings_.kind == OptimizerKind::lamb) f.rate = learning_rate;
  f.root_correction = 1 / std::sqrt(1 - std::pow(settings_.beta2, t));
  return f;
}

bool decays(const OptimizerSettings& settings, const at::Tensor& parameter) {
  return settings.decays_vectors || parameter.dim() > 1;
}

StepFactors Optimizer::factors_of(const at::Tensor& parameter, StepFactors f) const {
  if (decays(settings_, parameter)) return f;
  f.decay = 0;
  f.shrink = 1;
  return f;
}

/// The factor by which gradients are too long. On a GPU, which should not be waited for, they are
/// shortened in place and the factor is 1.
double Optimizer::clip() {
  std::vector<at::Tensor> norms;
  for (const at::Tensor& each : parameters_) {
    norms.push_back(at::linalg_vector_norm(each.grad()).to(at::kDouble));
  }
  const at::Tensor norm = at::linalg_vector_norm(at::stack(norms));
  const at::Tensor factor = (settings_.clip_norm / (norm + 1e-6)).clamp_max(1.0);
  if (factor.is_cpu()) return factor.item<double>();
  for (const at::Tensor& each : parameters_) each.grad().mul_(factor.to(each.scalar_type()));
  return 1;
}

void Optimizer::prepare(double learning_rate) {
  ++state_.steps;
  factors_ = factors(learning_rate);
  if (fused_) fused_->prepare(learning_rate, state_.steps);
}

void Optimizer::apply() {
  const c10::NoGradGuard no_gradients;
  StepFactors f = factors_;
  if (settings_.clip_norm > 0) f.clip = clip();
  if (fused_) {
    fused_->apply(settings_, parameters_, state_.first, state_.second);
    return;
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const StepFactors its = factors_of(parameters_[i], f);
    if (settings_.kind == OptimizerKind::lamb) {
      step_by_trust(i, its);
    } else if (in_one_pass(parameters_[i], parameters_[i].grad())) {
      step_in_one_pass(i, its);
    } else {
      step_by_operations(i, its);
    }
  }
}

void Optimizer::step_in_one_pass(std::size_t i, const StepFactors& f) {
  const at::Tensor& parameter = parameters_[i];
  auto* values = parameter.data_ptr<float>();
  const auto* gradient = parameter.grad().data_ptr<float>();
  auto* first = state_.first[i].data_ptr<float>();
  if (settings_.kind == OptimizerKind::sgd) {
    update_sgd(values, gradient, first, parameter.numel(), f);
    return;
  }
  update_adam(values, gradient, first, state_.second[i].data_ptr<float>(), parameter.numel(), f);
}

void Optimizer::step_by_operations(std::size_t i, const StepFactors& f) {
  at::Tensor parameter = parameters_[i].detach();
  at::Tensor gradient = parameters_[i].grad();
  if (f.clip != 1) gradient = gradient * f.clip;
  parameter.mul_(f.shrink);
  if (f.decay != 0) gradient = gradient.add(parameter, f.decay);
  at::Tensor& first = state_.first[i];
  if (settings_.kind == OptimizerKind::sgd) {
    parameter.sub_(first.mul_(f.beta1).add_(gradient), f.rate);
    return;
  }
  at::Tensor& second = state_.second[i];
  first.mul_(f.beta1).add_(gradient, 1 - f.beta1);
  second.mul_(f.beta2).addcmul_(gradient, gradient, 1 - f.beta2);
  parameter.addcdiv_(first, second.sqrt().mul_(f.root_correction).add_(f.epsilon), -f.rate);
}

/// LAMB's: as far as Adam's step is long beside the parameter, it is shortened. Its decay is part
/// of the step, and a parameter or step of length 0 has no ratio. Waits for no device.
void Optimizer::step_by_trust(std::size_t i, const StepFactors& f) {
  at::Tensor parameter = parameters_[i].detach();
  at::Tensor gradient = parameters_[i].grad();
  if (f.clip != 1) gradient = gradient * f.clip;
  at::Tensor& first = state_.first[i];
  at::Tensor& second = state_.second[i];
  first.mul_(f.beta1).add_(gradient, 1 - f.beta1);
  second.mul_(f.beta2).addcmul_(gradient, gradient, 1 - f.beta2);
  const double correction = 1 / (1 - std::pow(f.beta1, static_cast<double>(state_.steps)));
  const at::Tensor step =
      (first * correction).div_(second.sqrt().mul_(f.root_correction).add_(f.epsilon));
  step.add_(parameter, f.decay);
  const at::Tensor length = at::linalg_vector_norm(parameter);
  const at::Tensor of_step = at::linalg_vector_norm(step);
  const at::Tensor has_ratio = length.gt(0).logical_and(of_step.gt(0));
  const at::Tensor ratio = at::where(has_ratio, length / of_step, at::ones_like(length));
  parameter.sub_(step.mul_(ratio), f.rate);
}

// FusedUpdate makes the same calls as _fused_adam in
// https://github.com/pytorch/pytorch/blob/main/torch/optim/adam.py.

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
                        [[maybe_unused]] const std::vector<at::Tensor>& parameters,
                        [[maybe_unused]] const std::vector<at::Tensor>& first,
                        [[maybe_unused]] const std::vector<at::Tensor>& second) {
  const c10::NoGradGuard no_gradients;
  steps_.add_(1);
#ifdef DTOOL_HAS_FUSED_UPDATES
  for (const bool decaying : {true, false}) {
    std::vector<at::Tensor> values, gradients, its_first, its_second;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (decays(settings, parameters[i]) != decaying) continue;
      values.push_back(parameters[i].detach());
      gradients.push_back(parameters[i].grad());
      its_first.push_back(first[i]);
      if (!second.empty()) its_second.push_back(second[i]);
    }
    if (values.empty()) continue;
    const double decay = decaying ? settings.weight_decay : 0;
    if (settings.kind == OptimizerKind::sgd) {
      at::_fused_sgd_(values, gradients, its_first, decay, settings.momentum, learning_rate_,
                      /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false,
                      /*is_first_step=*/false);
      continue;
    }
    const std::vector<at::Tensor> steps(values.size(), steps_);
    const at::TensorList no_maxima;  // AMSGrad's
    const auto update = [&](auto function) {
      function(values, gradients, its_first, its_second, no_maxima, steps, learning_rate_,
               settings.beta1, settings.beta2, decay, settings.epsilon, /*amsgrad=*/false,
               /*maximize=*/false);
    };
    if (settings.kind == OptimizerKind::adam) {
      update([](auto&&... arguments) { at::_fused_adam_(arguments...); });
    } else {
      update([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
    }
  }
#else
  throw std::logic_error("this LibTorch has no fused updates");
#endif
}

}  // namespace dtool::trainer
