// SPDX-License-Identifier: MIT
#include "sync/host/cipher.h"

#include <bit>

#include "ssh/host/message.h"
#include "ssh/host/sha256.h"

namespace dtool::host {
namespace {

constexpr std::string_view kConstants = "expand 32-byte k";

void mix(std::array<std::uint32_t, 16>& x, int a, int b, int c, int d) {
  x[a] += x[b];
  x[d] = std::rotl(x[d] ^ x[a], 16);
  x[c] += x[d];
  x[b] = std::rotl(x[b] ^ x[c], 12);
  x[a] += x[b];
  x[d] = std::rotl(x[d] ^ x[a], 8);
  x[c] += x[d];
  x[b] = std::rotl(x[b] ^ x[c], 7);
}

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

void Cipher::make_block() {
  std::array<std::uint32_t, 16> x = state_;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4; ++i) mix(x, i, 4 + i, 8 + i, 12 + i);
    for (int i = 0; i < 4; ++i) mix(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t word = x[i] + state_[i];
    for (std::size_t byte = 0; byte < 4; ++byte)
      block_[i * 4 + byte] = static_cast<std::uint8_t>(word >> (8 * byte));
  }
  if (++state_[12] == 0) ++state_[13];  // more than 256 GB, where the nonce is zero
  used_ = 0;
}

void Cipher::apply(char* bytes, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    if (used_ == block_.size()) make_block();
    bytes[i] = static_cast<char>(static_cast<std::uint8_t>(bytes[i]) ^ block_[used_++]);
  }
}

}  // namespace dtool::host
