// SPDX-License-Identifier: MIT
// Which samples a rank gets, in which order, and the copy of their bytes. Without LibTorch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtool::trainer {

/// A half-open range of sample numbers.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Random numbers that are equal on every machine and with every standard library: splitmix64,
/// https://prng.di.unimi.it/splitmix64.c.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  /// Uniform from 0 to `bound` - 1.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform from `least` to `most`.
  double between(double least, double most);

 private:
  std::uint64_t state_;
};

/// This rank's samples of one training epoch, in order. All ranks use the same permutation of
/// 0..`samples`-1, which depends only on (seed, epoch). Its entries from `first` on are dealt out
/// like cards: rank r gets the entries first + r, first + r + world size, and so on. So the ranks'
/// samples are disjoint and equally many (up to world size - 1 samples at the end are left out,
/// different ones each epoch). The ranks' batches of one step together are the batch that a single
/// rank with the whole batch size would take.
std::vector<std::int64_t> training_order(std::int64_t samples, int rank, int world_size,
                                         std::uint64_t seed, std::int64_t epoch,
                                         std::int64_t first = 0);

/// This rank's part of an evaluation; together the ranks cover each sample exactly once.
Range evaluation_range(std::int64_t samples, int rank, int world_size);

/// The inner loop of loading images: writes row `samples[i]` of `rows` ([any, width] bytes) to row
/// i of `out` ([samples, width]), each value divided by 255 as torchvision's ToTensor does.
void gather_bytes(const std::uint8_t* rows, std::int64_t width,
                  std::span<const std::int64_t> samples, float* out);

// Which samplers of environments learn together.

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
