// SPDX-License-Identifier: MIT
// The arithmetic on numbers that ranks exchange.
#pragma once

#include <cstddef>

#include "trainer/comm/exchange_plan.h"

namespace dtool::trainer {

/// Adds `count` numbers to those at `into`, or replaces them. The two ranges do not overlap.
void combine(float* into, const float* from, std::size_t count, Combine how);

/// Multiplies each of `count` numbers by `factor`.
void scale(float* numbers, std::size_t count, float factor);

}  // namespace dtool::trainer
