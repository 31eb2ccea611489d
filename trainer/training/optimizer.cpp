// SPDX-License-Identifier: MIT
// On CPUs torch::optim::Adam passes over the memory eight times and launches as many operations.
// For a small network that takes longer than its gradients.
#include "trainer/training/optimizer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

namespace dtool::trainer {

namespace {

bool in_one_pass(const at::Tensor& parameter, const at::Tensor& gradient) {
  return parameter.device().is_cpu() && parameter.scalar_type() == at::kFloat &&
         parameter.is_contiguous() && gradient.is_contiguous();
}

}  // namespace

Optimizer::Optimizer(std::vector<at::Tensor> parameters, const OptimizerSettings& settings)
    : parameters_(std::move(parameters)), settings_(settings) {
  if (FusedUpdate::serves(parameters_)) fused_.emplace(parameters_.at(0).device());
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
  f.root_correction = 1 / std::sqrt(1 - std::pow(settings_.beta2, t));
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
    if (in_one_pass(parameters_[i], parameters_[i].grad())) {
      step_in_one_pass(i, f);
    } else {
      step_by_operations(i, f);
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

}  // namespace dtool::trainer
