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
  for (std::int64_t i = 0; i < size; ++i) {
    const float p = parameter[i] * f.shrink;
    const float g = gradient[i] * f.clip + f.decay * p;
    first[i] = f.beta1 * first[i] + (1 - f.beta1) * g;
    second[i] = f.beta2 * second[i] + (1 - f.beta2) * (g * g);
    parameter[i] = p - f.rate * first[i] / (std::sqrt(second[i]) * f.root_correction + f.epsilon);
  }
}

DTOOL_WIDE
void update_sgd(float* __restrict parameter, const float* __restrict gradient,
                float* __restrict momentum, std::int64_t size, StepFactors f) {
  for (std::int64_t i = 0; i < size; ++i) {
    momentum[i] = f.beta1 * momentum[i] + (gradient[i] * f.clip + f.decay * parameter[i]);
    parameter[i] -= f.rate * momentum[i];
  }
}

}  // namespace dtool::trainer
