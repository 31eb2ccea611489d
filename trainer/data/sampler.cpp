// SPDX-License-Identifier: MIT
// Fisher-Yates over our own random numbers, since std::shuffle differs between standard libraries.
#include "trainer/data/sampler.h"

#include <numeric>
#include <utility>

namespace dtool::trainer {
namespace {

// Compiled with -O3, so that the compiler vectorises the loop.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx2", "default")))
#endif
void to_floats(const std::uint8_t* __restrict in, float* __restrict out, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) out[i] = static_cast<float>(in[i]) / 255.0F;
}

/// Asks for a row before it is needed. Samples lie all over the memory, and waiting for each is
/// most of the time.
void prefetch(const std::uint8_t* row, std::int64_t size) {
  constexpr std::int64_t kCacheLine = 64;
  for (std::int64_t i = 0; i < size; i += kCacheLine) __builtin_prefetch(row + i);
}

}  // namespace

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

void gather_bytes(const std::uint8_t* rows, std::int64_t width,
                  std::span<const std::int64_t> samples, float* out) {
  constexpr std::size_t kAhead = 4;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i + kAhead < samples.size()) prefetch(rows + samples[i + kAhead] * width, width);
    to_floats(rows + samples[i] * width, out, width);
    out += width;
  }
}

}  // namespace dtool::trainer
