// SPDX-License-Identifier: MIT
// Compiled with -O3, so that the compiler vectorises the loop.
#include "trainer/data/gather_bytes.h"

namespace dtool::trainer {
namespace {

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
