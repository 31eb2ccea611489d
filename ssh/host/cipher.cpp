// SPDX-License-Identifier: MIT
#include "ssh/host/cipher.h"

#include <algorithm>
#include <bit>

#include "killfiles/channel/sha256.h"
#include "ssh/wire/message.h"

namespace dtool::host {
namespace {

static_assert(std::endian::native == std::endian::little, "the stream is words in this order");

constexpr std::string_view kConstants = "expand 32-byte k";

/// The same word of several blocks: the processor works on all of them at once.
using Lanes = std::uint32_t __attribute__((vector_size(32)));
constexpr std::size_t kLanes = sizeof(Lanes) / sizeof(std::uint32_t);

[[gnu::always_inline]] inline void add_and_rotate(Lanes& sum, const Lanes& more, Lanes& turned,
                                                  int bits) {
  sum += more;
  turned ^= sum;
  turned = turned << bits | turned >> (32 - bits);
}

[[gnu::always_inline]] inline void mix(Lanes& a, Lanes& b, Lanes& c, Lanes& d) {
  add_and_rotate(a, b, d, 16);
  add_and_rotate(c, d, b, 12);
  add_and_rotate(a, b, d, 8);
  add_and_rotate(c, d, b, 7);
}

/// Writes the next blocks of `state`, and counts them there.
[[gnu::always_inline]] inline void make_blocks(std::array<std::uint32_t, 16>& state,
                                               std::uint32_t* stream) {
  std::array<Lanes, 16> start;
  for (std::size_t i = 0; i < 16; ++i) start[i] = Lanes{} + state[i];
  start[12] += Lanes{0, 1, 2, 3, 4, 5, 6, 7};
  // A comparison that holds is -1. After 256 GB the count begins anew, where the nonce is zero.
  start[13] -= start[12] < state[12];
  std::array<Lanes, 16> x = start;
  for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) mix(x[i], x[4 + i], x[8 + i], x[12 + i]);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i)
      mix(x[i], x[4 + (i + 1) % 4], x[8 + (i + 2) % 4], x[12 + (i + 3) % 4]);
  }
  for (std::size_t i = 0; i < 16; ++i) {
    x[i] += start[i];
    for (std::size_t lane = 0; lane < kLanes; ++lane) stream[lane * 16 + i] = x[i][lane];
  }
  state[12] += kLanes;
  if (state[12] < kLanes) ++state[13];
}

#ifdef __x86_64__
/// Twice as fast as with the vectors that every x86-64 processor has.
[[gnu::target("avx2")]] void make_blocks_by_avx2(std::array<std::uint32_t, 16>& state,
                                                 std::uint32_t* stream) {
  make_blocks(state, stream);
}
#endif

}  // namespace

Cipher::Cipher(std::string_view key)
    : Cipher(bytes_of(sha256(key)), std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0", 12), 0) {}

Cipher::Cipher(std::string_view key, std::string_view nonce, std::uint32_t counter) {
  std::string bytes(kConstants);
  bytes.append(key).append(number_bytes(counter, 4)).append(nonce);
  for (std::size_t i = 0; i < state_.size(); ++i)
    state_[i] =
        static_cast<std::uint32_t>(read_number_bytes(std::string_view(bytes).substr(i * 4, 4)));
}

void Cipher::refill() {
  static_assert(kBlocks == kLanes);
  used_ = 0;
#ifdef __x86_64__
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return make_blocks_by_avx2(state_, stream_.data());
#endif
  make_blocks(state_, stream_.data());
}

void Cipher::apply(char* bytes, std::size_t size) {
  while (size > 0) {
    if (used_ == sizeof(stream_)) refill();
    const char* stream = reinterpret_cast<const char*>(stream_.data()) + used_;
    const std::size_t count = std::min(size, sizeof(stream_) - used_);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(bytes[i] ^ stream[i]);
    used_ += count;
    bytes += count;
    size -= count;
  }
}

}  // namespace dtool::host
