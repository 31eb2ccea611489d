// SPDX-License-Identifier: MIT
// Fisher-Yates over our own random numbers, since std::shuffle differs between standard libraries.
#include "trainer/data/sampler.h"

#include <numeric>
#include <utility>

namespace dtool::trainer {

std::uint64_t Random::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t Random::below(std::uint64_t bound) {
  // Values under 2^64 mod bound would make small results likelier:
  // https://arxiv.org/abs/1805.10941.
  const std::uint64_t least = -bound % bound;
  for (;;) {
    if (const std::uint64_t value = next(); value >= least) return value % bound;
  }
}

double Random::between(double least, double most) {
  return least + (most - least) * (static_cast<double>(next() >> 11) * 0x1p-53);
}

std::vector<std::int64_t> training_order(std::int64_t samples, int rank, int world_size,
                                         std::uint64_t seed, std::int64_t epoch,
                                         std::int64_t first) {
  std::vector<std::int64_t> permutation(static_cast<std::size_t>(samples));
  std::iota(permutation.begin(), permutation.end(), 0);
  Random random(Random(seed).next() + static_cast<std::uint64_t>(epoch));
  for (std::size_t left = permutation.size(); left > 1; --left) {
    std::swap(permutation[left - 1], permutation[random.below(left)]);
  }
  const std::int64_t share = (samples - first) / world_size;
  std::vector<std::int64_t> order(static_cast<std::size_t>(share));
  for (std::int64_t i = 0; i < share; ++i) {
    order[static_cast<std::size_t>(i)] =
        permutation[static_cast<std::size_t>(first + i * world_size + rank)];
  }
  return order;
}

Range evaluation_range(std::int64_t samples, int rank, int world_size) {
  return {samples * rank / world_size, samples * (rank + 1) / world_size};
}

}  // namespace dtool::trainer
