// SPDX-License-Identifier: MIT
// Data sets that the program draws itself, so that a network can be trained without any download:
// the ten digits as strokes, each bent, turned, shifted and blurred at random, and random numbers.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "trainer/data/data_settings.h"
#include "trainer/data/idx.h"

namespace dtool::trainer {

/// `count` images of 28 x 28 pixels with labels 0 to 9. The same `seed` gives the same images on
/// every machine. Image i depends only on (seed, i). The images' memory comes from `memory`.
LabelledImages draw_digits(std::int64_t count, std::uint64_t seed,
                           std::pmr::memory_resource* memory = std::pmr::get_default_resource());

/// Samples of floats for a regression, the same on every machine, each with one value to predict.
struct LabelledValues {
  std::pmr::vector<float> inputs;   ///< [count, features], evenly from 0 to 1
  std::pmr::vector<float> targets;  ///< [count]
};

/// `noise`: targets are uniform from 0 to 1 and independent of the inputs, so the least mean
/// squared error is near 1/12, their variance. `linear`: a weighted sum of the inputs plus a
/// constant, with weights from -1 to 1 that depend only on `rule_seed`, plus noise from -0.1 to
/// 0.1, whose variance 1/300 is the least error. The values' memory comes from `memory`.
LabelledValues draw_values(std::int64_t count, std::int64_t features, RandomTargets targets,
                           std::uint64_t seed, std::uint64_t rule_seed,
                           std::pmr::memory_resource* memory);

}  // namespace dtool::trainer
