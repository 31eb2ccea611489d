// SPDX-License-Identifier: MIT
#include "trainer/training/update_on_cpu.h"

#include <cmath>

namespace dtool::trainer {

// Uses wider registers if the processor has them. Every operation is rounded as in IEEE 754 and
// none is fused, so that machines with different processors keep equal parameters.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DTOOL_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define DTOOL_WIDE
#endif

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

}  // namespace dtool::trainer
