// SPDX-License-Identifier: MIT
#include "trainer/reinforcement/mini_batches.h"

#include <numeric>
#include <utility>

#include "trainer/data/sampler.h"

namespace dtool::trainer {

namespace {

constexpr std::uint64_t kPurpose = 0x6d696e692d626174;  // "mini-bat"

/// A permutation of 0 .. `size` - 1.
std::vector<std::int64_t> permutation(std::int64_t size, std::uint64_t bits) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  Random random(bits);
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
  return order;
}

}  // namespace

std::vector<std::vector<std::int64_t>> mini_batches(const SamplerRange& samplers,
                                                    std::int64_t parts, std::uint64_t seed,
                                                    std::int64_t pass) {
  std::vector<std::vector<std::int64_t>> batches(static_cast<std::size_t>(parts));
  std::vector<std::int64_t> order;
  std::int64_t group_of_order = -1;
  for (std::int64_t i = 0; i < samplers.count; ++i) {
    const std::int64_t number = samplers.first + i;
    if (const auto group = number / parts; group != group_of_order) {
      order = permutation(parts, random_bits(kPurpose, seed, static_cast<std::uint64_t>(pass),
                                             static_cast<std::uint64_t>(group)));
      group_of_order = group;
    }
    const auto part = order[static_cast<std::size_t>(number % parts)];
    batches[static_cast<std::size_t>(part)].push_back(i);
  }
  return batches;
}

std::uint64_t random_bits(std::uint64_t purpose, std::uint64_t seed, std::uint64_t stream,
                          std::uint64_t number) {
  std::uint64_t bits = Random(purpose).next();
  for (const std::uint64_t each : {seed, stream, number}) bits = Random(bits ^ each).next();
  return bits;
}

double random_share(std::uint64_t purpose, std::uint64_t seed, std::uint64_t stream,
                    std::uint64_t number) {
  return static_cast<double>(random_bits(purpose, seed, stream, number) >> 11) * 0x1p-53;
}

}  // namespace dtool::trainer
