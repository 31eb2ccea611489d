// SPDX-License-Identifier: MIT
#include "trainer/reinforcement/counted_random.h"

#include "trainer/data/sampler.h"

namespace dtool::trainer {

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
