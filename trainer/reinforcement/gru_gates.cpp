// Compiled with -ffast-math, for which the C library has exp and tanh of whole registers (libmvec).
#include "trainer/reinforcement/gru_gates.h"

#include <cmath>

#include "trainer/reinforcement/wide.h"

namespace dtool::trainer {

DTOOL_WIDEST
void gates_forward(const GateShape& shape, const GateForward& step) {
  const auto width = shape.width;
  const float* const bias = step.bias;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const float* __restrict recurrent = step.recurrent + row * 3 * width;
    float* __restrict gates = step.gates + row * 3 * width;
    for (std::int64_t i = 0; i < 2 * width; ++i) {
      gates[i] = 1 / (1 + std::exp(-(gates[i] + recurrent[i] + bias[i])));
    }
    const float* __restrict memory = step.memory + row * width;
    float* __restrict candidate = step.candidate + row * width;
    float* __restrict next_memory = step.next_memory + row * width;
    for (std::int64_t i = 0; i < width; ++i) {
      const float m = recurrent[2 * width + i] + bias[3 * width + i];
      const float n = std::tanh(gates[2 * width + i] + bias[2 * width + i] + gates[i] * m);
      gates[2 * width + i] = n;
      candidate[i] = m;
      next_memory[i] = n + gates[width + i] * (memory[i] - n);
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
  float* __restrict bias = step.bias;
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const float keep = step.next_keep == nullptr ? 0 : step.next_keep[row];
    const float* __restrict gradient = step.gradient + row * width;
    const float* __restrict memory = step.memory + row * width;
    float* __restrict carried = step.carried + row * width;
    float* __restrict gates = step.gates + row * 3 * width;
    float* __restrict candidate = step.candidate + row * width;
    for (std::int64_t i = 0; i < width; ++i) {
      const float r = gates[i];
      const float z = gates[width + i];
      const float n = gates[2 * width + i];
      const float whole = gradient[i] + keep * carried[i];
      const float at_n = whole * (1 - z) * (1 - n * n);
      const float at_r = at_n * candidate[i] * r * (1 - r);
      const float at_z = whole * (memory[i] - n) * z * (1 - z);
      const float at_m = at_n * r;
      carried[i] = whole * z;
      gates[i] = at_r;
      gates[width + i] = at_z;
      gates[2 * width + i] = at_n;
      candidate[i] = at_m;
      bias[i] += at_r;
      bias[width + i] += at_z;
      bias[2 * width + i] += at_n;
      bias[3 * width + i] += at_m;
    }
  }
}

}  // namespace dtool::trainer
