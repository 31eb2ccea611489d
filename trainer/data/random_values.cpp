// SPDX-License-Identifier: MIT
// Each set comes from one stream of random numbers, row by row.
#include "trainer/data/random_values.h"

#include "trainer/data/sampler.h"

namespace dtool::trainer {

LabelledValues draw_values(std::int64_t count, std::int64_t features, RandomTargets targets,
                           std::uint64_t seed, std::uint64_t rule_seed,
                           std::pmr::memory_resource* memory) {
  Random rule(rule_seed + 0x72756c65);  // another stream than the samples'
  std::vector<double> weights(static_cast<std::size_t>(features));
  for (double& each : weights) each = rule.between(-1, 1);
  const double constant = rule.between(-1, 1);

  Random random(seed);
  LabelledValues values{std::pmr::vector<float>(memory), std::pmr::vector<float>(memory)};
  values.inputs.reserve(static_cast<std::size_t>(count * features));
  values.targets.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = constant;
    for (const double weight : weights) {
      const double input = random.between(0, 1);
      values.inputs.push_back(static_cast<float>(input));
      sum += weight * input;
    }
    const double target =
        targets == RandomTargets::linear ? sum + random.between(-0.1, 0.1) : random.between(0, 1);
    values.targets.push_back(static_cast<float>(target));
  }
  return values;
}

}  // namespace dtool::trainer
