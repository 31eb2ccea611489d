// Random numbers that are worked out from what they are for instead of drawn one after another, so
// that it does not matter which rank, in which order, asks for them.
#pragma once

#include <cstdint>

namespace dtool::trainer {

/// 64 random bits for (`seed`, `stream`, `number`); `purpose` keeps users apart. Rounds of
/// splitmix64's mixing function, https://prng.di.unimi.it/splitmix64.c.
std::uint64_t random_bits(std::uint64_t purpose, std::uint64_t seed, std::uint64_t stream,
                          std::uint64_t number);

/// Evenly from [0, 1).
double random_share(std::uint64_t purpose, std::uint64_t seed, std::uint64_t stream,
                    std::uint64_t number);

}  // namespace dtool::trainer
