// SPDX-License-Identifier: MIT
// Compiled with -ffast-math, for which the C library has vectorised exp and tanh (libmvec).
#include "trainer/reinforcement/gru_gates.h"

#include <cmath>

namespace dtool::trainer {

DTOOL_WIDEST
void gates_forward(const GateShape& shape, const GateForward& step) {
  const auto width = shape.width;
  const float* __restrict input_bias = step.input_bias;
  const float* __restrict recurrent_bias = step.recurrent_bias;
  const float* __restrict bias_in = input_bias + 2 * width;
  const float* __restrict bias_hn = recurrent_bias + 2 * width;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const float* __restrict recurrent = step.recurrent + row * 3 * width;
    float* __restrict gates = step.gates + row * 3 * width;
    for (std::int64_t i = 0; i < 2 * width; ++i) {
      const float sum = gates[i] + recurrent[i] + input_bias[i] + recurrent_bias[i];
      gates[i] = 1 / (1 + std::exp(-sum));
    }
    const float* __restrict r = gates;
    const float* __restrict z = gates + width;
    float* __restrict n = gates + 2 * width;
    const float* __restrict of_n = recurrent + 2 * width;
    const float* __restrict memory = step.memory + row * width;
    float* __restrict candidate = step.candidate + row * width;
    float* __restrict next_memory = step.next_memory + row * width;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < width; ++i) {
      candidate[i] = of_n[i] + bias_hn[i];
      n[i] = std::tanh(n[i] + bias_in[i] + r[i] * candidate[i]);
      next_memory[i] = n[i] + z[i] * (memory[i] - n[i]);
    }
    if (step.next_keep == nullptr) continue;
    float* __restrict kept_memory = step.kept_memory + row * width;
    const float keep = step.next_keep[row];
    for (std::int64_t i = 0; i < width; ++i) kept_memory[i] = keep * next_memory[i];
  }
}

DTOOL_WIDEST
void gates_backward(const GateShape& shape, const GateBackward& step) {
  const auto width = shape.width;
  float* __restrict bias_r = step.bias;
  float* __restrict bias_z = step.bias + width;
  float* __restrict bias_in = step.bias + 2 * width;
  float* __restrict bias_hn = step.bias + 3 * width;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const float keep = step.next_keep == nullptr ? 0 : step.next_keep[row];
    const float* __restrict gradient = step.gradient + row * width;
    const float* __restrict memory = step.memory + row * width;
    float* __restrict carried = step.carried + row * width;
    float* __restrict r = step.gates + row * 3 * width;
    float* __restrict z = r + width;
    float* __restrict n = z + width;
    float* __restrict m = step.candidate + row * width;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < width; ++i) {
      const float whole = gradient[i] + keep * carried[i];
      const float at_n = whole * (1 - z[i]) * (1 - n[i] * n[i]);
      const float at_r = at_n * m[i] * r[i] * (1 - r[i]);
      const float at_z = whole * (memory[i] - n[i]) * z[i] * (1 - z[i]);
      const float at_m = at_n * r[i];
      carried[i] = whole * z[i];
      r[i] = at_r;
      z[i] = at_z;
      n[i] = at_n;
      m[i] = at_m;
      bias_r[i] += at_r;
      bias_z[i] += at_z;
      bias_in[i] += at_n;
      bias_hn[i] += at_m;
    }
  }
}

}  // namespace dtool::trainer
