// SPDX-License-Identifier: MIT
// Which samplers learn together.
#pragma once

#include <cstdint>
#include <vector>

namespace dtool::trainer {

/// The samplers of a rank: global numbers `first` to `first` + `count` - 1.
struct SamplerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// `parts` mini-batches of whole sequences: for each one the rank's samplers in it, as rising
/// indices from 0. Of every group of `parts` samplers with neighbouring numbers, one goes to each
/// mini-batch, by a permutation that depends only on (`seed`, `pass`, the group). So all ranks'
/// mini-batches together are the same, however samplers are distributed over ranks. `pass` counts
/// the passes over experience. If a rank's samplers do not begin and end with a group, its
/// mini-batches differ in size.
std::vector<std::vector<std::int64_t>> mini_batches(const SamplerRange& samplers,
                                                    std::int64_t parts, std::uint64_t seed,
                                                    std::int64_t pass);

// Random numbers that are computed from their purpose instead of drawn in sequence. So it does not
// matter which rank asks for them, or in which order.

/// 64 random bits for (`seed`, `stream`, `number`); `purpose` separates users. Rounds of
/// splitmix64's mixing function, https://prng.di.unimi.it/splitmix64.c.
std::uint64_t random_bits(std::uint64_t purpose, std::uint64_t seed, std::uint64_t stream,
                          std::uint64_t number);

/// Uniform in [0, 1).
double random_share(std::uint64_t purpose, std::uint64_t seed, std::uint64_t stream,
                    std::uint64_t number);

}  // namespace dtool::trainer
