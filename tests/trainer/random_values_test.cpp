// SPDX-License-Identifier: MIT
#include "trainer/data/drawn_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "trainer/data/sampler.h"

using namespace dtool::trainer;

namespace {

LabelledValues drawn(std::int64_t count, RandomTargets targets, std::uint64_t seed) {
  return draw_values(count, 2, targets, seed, 7, std::pmr::get_default_resource());
}

}  // namespace

TEST(RandomValues, AreDrawnRowByRowFromTheSeedsStream) {
  const auto values = drawn(2, RandomTargets::noise, 3);
  Random random(3);
  for (std::size_t row = 0; row < 2; ++row) {
    for (const std::size_t column : {0, 1}) {
      EXPECT_EQ(values.inputs[2 * row + column], static_cast<float>(random.between(0, 1)));
    }
    EXPECT_EQ(values.targets[row], static_cast<float>(random.between(0, 1)));
  }
  EXPECT_EQ(values.inputs.size(), 4u);
  EXPECT_EQ(values.inputs.capacity(), 4u) << "no memory is taken that is not filled";
  EXPECT_EQ(drawn(5, RandomTargets::noise, 3).targets.capacity(), 5u);
}

TEST(RandomValues, LinearTargetsAreAWeightedSumOfTheRulesStreamAndALittleNoise) {
  const auto values = drawn(1000, RandomTargets::linear, 3);
  Random rule(7 + 0x72756c65);
  const double first = rule.between(-1, 1);
  const double second = rule.between(-1, 1);
  const double constant = rule.between(-1, 1);
  double least = 0;
  double most = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    const double noise = values.targets[i] - constant - first * values.inputs[2 * i] -
                         second * values.inputs[2 * i + 1];
    least = std::min(least, noise);
    most = std::max(most, noise);
  }
  EXPECT_NEAR(least, -0.1, 1e-3);
  EXPECT_NEAR(most, 0.1, 1e-3);
}
