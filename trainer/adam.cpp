// On CPUs torch::optim::Adam passes eight times over the memory and starts as many operations,
// which for a small network costs more than its gradients do.
#include "trainer/adam.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <cmath>

namespace dtool::trainer {
namespace {

/// theta -= rate * m / (sqrt(v) * root_correction + epsilon), all in the parameters' own precision.
struct Factors {
  float beta1;
  float beta2;
  float epsilon;
  float rate;             ///< learning rate / (1 - beta1^t)
  float root_correction;  ///< 1 / sqrt(1 - beta2^t)
};

// Wider registers where the processor has them. Every operation is rounded as IEEE 754 says and
// none are fused, so that machines with different processors keep equal parameters.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx2", "default")))
#endif
void update(float* __restrict parameter, const float* __restrict gradient, float* __restrict first,
            float* __restrict second, std::int64_t size, Factors f) {
  for (std::int64_t i = 0; i < size; ++i) {
    const float g = gradient[i];
    first[i] = f.beta1 * first[i] + (1 - f.beta1) * g;
    second[i] = f.beta2 * second[i] + (1 - f.beta2) * (g * g);
    parameter[i] -= f.rate * first[i] / (std::sqrt(second[i]) * f.root_correction + f.epsilon);
  }
}

bool in_one_pass(const at::Tensor& parameter, const at::Tensor& gradient) {
  return parameter.device().is_cpu() && parameter.scalar_type() == at::kFloat &&
         parameter.is_contiguous() && gradient.is_contiguous();
}

}  // namespace

Adam::Adam(std::vector<at::Tensor> parameters, Rates rates)
    : parameters_(std::move(parameters)), rates_(rates) {
  for (const at::Tensor& each : parameters_) {
    state_.first_moments.push_back(at::zeros_like(each.detach(), at::MemoryFormat::Contiguous));
    state_.second_moments.push_back(at::zeros_like(each.detach(), at::MemoryFormat::Contiguous));
  }
}

void Adam::step() {
  const c10::NoGradGuard no_gradients;
  const auto t = static_cast<double>(++state_.steps);
  const double rate = rates_.learning_rate / (1 - std::pow(rates_.beta1, t));
  const double root_correction = 1 / std::sqrt(1 - std::pow(rates_.beta2, t));
  const Factors factors{static_cast<float>(rates_.beta1), static_cast<float>(rates_.beta2),
                        static_cast<float>(rates_.epsilon), static_cast<float>(rate),
                        static_cast<float>(root_correction)};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& parameter = parameters_[i];
    const at::Tensor& gradient = parameter.grad();
    at::Tensor& first = state_.first_moments[i];
    at::Tensor& second = state_.second_moments[i];
    if (in_one_pass(parameter, gradient)) {
      update(parameter.data_ptr<float>(), gradient.data_ptr<float>(), first.data_ptr<float>(),
             second.data_ptr<float>(), parameter.numel(), factors);
      continue;
    }
    first.mul_(rates_.beta1).add_(gradient, 1 - rates_.beta1);
    second.mul_(rates_.beta2).addcmul_(gradient, gradient, 1 - rates_.beta2);
    parameter.addcdiv_(first, second.sqrt().mul_(root_correction).add_(rates_.epsilon), -rate);
  }
}

}  // namespace dtool::trainer
