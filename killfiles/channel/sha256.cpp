// SPDX-License-Identifier: MIT
#include "killfiles/channel/sha256.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

namespace dtool::host {
namespace {

constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#ifdef __x86_64__

/// The instructions for SHA-256 do it some five times as fast. Not every processor has them.
bool has_instructions() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kSsse3AndSse41 = 1U << 9U | 1U << 19U;
  constexpr unsigned kSha = 1U << 29U;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSsse3AndSse41) != kSsse3AndSse41) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kSha) != 0;
}

/// The processor keeps the state as two registers, ABEF and CDGH, and does two rounds at once.
__attribute__((target("sha,sse4.1"))) void add_block_by_instructions(
    std::array<std::uint32_t, 8>& state, const std::uint8_t* block) {
  const auto load = [](const void* from) __attribute__((target("sha,sse4.1"))) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  };
  const auto word = [&state](std::size_t i) { return static_cast<int>(state[i]); };
  __m128i abef = _mm_set_epi32(word(0), word(1), word(4), word(5));
  __m128i cdgh = _mm_set_epi32(word(2), word(3), word(6), word(7));
  const __m128i abef_before = abef;
  const __m128i cdgh_before = cdgh;
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i w[16];  // four words each
  for (std::size_t i = 0; i < 16; ++i) {
    if (i < 4) {
      w[i] = _mm_shuffle_epi8(load(block + 16 * i), big_endian);
    } else {
      const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[i - 4], w[i - 3]),
                                        _mm_alignr_epi8(w[i - 1], w[i - 2], 4));
      w[i] = _mm_sha256msg2_epu32(sum, w[i - 1]);
    }
    const __m128i rounds = _mm_add_epi32(w[i], load(kRound.data() + 4 * i));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, rounds);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(rounds, 0x0e));
  }
  abef = _mm_add_epi32(abef, abef_before);
  cdgh = _mm_add_epi32(cdgh, cdgh_before);
  alignas(16) std::array<std::uint32_t, 4> first;
  alignas(16) std::array<std::uint32_t, 4> second;
  _mm_store_si128(reinterpret_cast<__m128i*>(first.data()), abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(second.data()), cdgh);
  state = {first[3], first[2], second[3], second[2], first[1], first[0], second[1], second[0]};
}

#endif

}  // namespace

void Sha256::add_block(const std::uint8_t* block) {
#ifdef __x86_64__
  static const bool is_fast = has_instructions();
  if (is_fast && way_ == Way::fastest) return add_block_by_instructions(state_, block);
#endif
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i)
    w[i] = std::uint32_t{block[4 * i]} << 24U | std::uint32_t{block[4 * i + 1]} << 16U |
           std::uint32_t{block[4 * i + 2]} << 8U | block[4 * i + 3];
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t low = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3U;
    const std::uint32_t high = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10U;
    w[i] = w[i - 16] + low + w[i - 7] + high;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                              ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const std::uint32_t two =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const std::array<std::uint32_t, 8> sums{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += sums[i];
}

void Sha256::add(std::string_view bytes) {
  while (!bytes.empty()) {
    if (size_ % block_.size() == 0 && bytes.size() >= block_.size()) {  // no need to copy it
      add_block(reinterpret_cast<const std::uint8_t*>(bytes.data()));
      size_ += block_.size();
      bytes.remove_prefix(block_.size());
      continue;
    }
    const std::size_t used = size_ % block_.size();
    const std::size_t taken = std::min(bytes.size(), block_.size() - used);
    std::memcpy(block_.data() + used, bytes.data(), taken);
    size_ += taken;
    bytes.remove_prefix(taken);
    if (size_ % block_.size() == 0) add_block(block_.data());
  }
}

Digest Sha256::finish() {
  const std::uint64_t bits = size_ * 8;
  add(std::string_view("\x80", 1));
  while (size_ % block_.size() != 56) add(std::string_view("\0", 1));
  std::string length;
  for (int shift = 56; shift >= 0; shift -= 8) length += static_cast<char>(bits >> shift & 0xffU);
  add(length);
  Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string Sha256::state() const {
  std::string text(reinterpret_cast<const char*>(state_.data()), sizeof state_);
  text.append(reinterpret_cast<const char*>(block_.data()), block_.size());
  return text.append(reinterpret_cast<const char*>(&size_), sizeof size_);
}

bool Sha256::go_on_from(std::string_view state) {
  if (state.size() != sizeof state_ + sizeof block_ + sizeof size_) return false;
  std::memcpy(state_.data(), state.data(), sizeof state_);
  std::memcpy(block_.data(), state.data() + sizeof state_, sizeof block_);
  std::memcpy(&size_, state.data() + sizeof state_ + sizeof block_, sizeof size_);
  return true;
}

Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

Digest hmac_sha256(std::string_view key, std::string_view bytes) {
  constexpr std::size_t kBlock = 64;
  std::string padded(key.size() > kBlock ? bytes_of(sha256(key)) : key);
  padded.resize(kBlock);
  std::string inner = padded;
  std::string outer = padded;
  for (char& each : inner) each = static_cast<char>(each ^ 0x36);
  for (char& each : outer) each = static_cast<char>(each ^ 0x5c);
  const Digest digest = sha256(inner.append(bytes));
  return sha256(outer.append(bytes_of(digest)));
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char each : bytes) {
    text += kDigits[static_cast<std::uint8_t>(each) >> 4U];
    text += kDigits[static_cast<std::uint8_t>(each) & 0xfU];
  }
  return text;
}

bool are_equal(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    difference |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]);
  return difference == 0;
}

}  // namespace dtool::host
