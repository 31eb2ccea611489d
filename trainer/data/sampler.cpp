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

namespace {

/// A permutation of 0 .. `size` - 1.
std::vector<std::int64_t> permutation(std::int64_t size, Random random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
  return order;
}

}  // namespace

std::vector<std::int64_t> training_order(std::int64_t samples, int rank, int world_size,
                                         std::uint64_t seed, std::int64_t epoch,
                                         std::int64_t first) {
  const auto dealt =
      permutation(samples, Random(Random(seed).next() + static_cast<std::uint64_t>(epoch)));
  const std::int64_t share = (samples - first) / world_size;
  std::vector<std::int64_t> order(static_cast<std::size_t>(share));
  for (std::int64_t i = 0; i < share; ++i) {
    order[static_cast<std::size_t>(i)] =
        dealt[static_cast<std::size_t>(first + i * world_size + rank)];
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

namespace {

constexpr std::uint64_t kPurpose = 0x6d696e692d626174;  // "mini-bat"

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
      order =
          permutation(parts, Random(random_bits(kPurpose, seed, static_cast<std::uint64_t>(pass),
                                                static_cast<std::uint64_t>(group))));
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
