// SPDX-License-Identifier: MIT
// Random numbers that are computed from their purpose instead of drawn in sequence. So it does not
// matter which rank asks for them, or in which order.
#pragma once

#include <cstdint>

namespace dtool::trainer {

/// 64 random bits for (`seed`, `stream`, `number`); `purpose` separates users. Rounds of
/// splitmix64's mixing function, https://prng.di.unimi.it/splitmix64.c.
std::uint64_t random_bits(std::uint64_t purpose, std::uint64_t seed, std::uint64_t stream,
                          std::uint64_t number);

/// Uniform in [0, 1).
double random_share(std::uint64_t purpose, std::uint64_t seed, std::uint64_t stream,
                    std::uint64_t number);

}  // namespace dtool::trainer
