// SPDX-License-Identifier: MIT
// In a file of its own, because it alone is compiled with vector instructions.
#include "trainer/comm/combine.h"

#include <cstring>

namespace dtool::trainer {

void combine(float* __restrict into, const float* __restrict from, std::size_t count, Combine how) {
  if (how == Combine::replace) {
    std::memcpy(into, from, count * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) into[i] += from[i];
}

void scale(float* numbers, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) numbers[i] *= factor;
}

}  // namespace dtool::trainer
