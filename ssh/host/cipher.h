// SPDX-License-Identifier: MIT
// ChaCha20 (RFC 8439): encrypts what hosts pass on to each other over open connections. It does not
// detect changes; a checksum does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dtool::host {

class Cipher {
 public:
  /// A key is for one message. Its text may have any length; 256 bits of its SHA-256 are used.
  explicit Cipher(std::string_view key);
  /// Uses the 32 bytes of a key, and a number that is used only once.
  Cipher(std::string_view key, std::string_view nonce, std::uint32_t counter);

  /// Encrypts or decrypts the next bytes of the message.
  void apply(char* bytes, std::size_t size);

 private:
  void refill();

  static constexpr std::size_t kBlocks = 8;  ///< the number of blocks that are made at once

  std::array<std::uint32_t, 16> state_{};             ///< the state of the next block
  std::array<std::uint32_t, 16 * kBlocks> stream_{};  ///< the blocks, one after the other
  std::size_t used_ = sizeof(stream_);                ///< bytes of the stream
};

}  // namespace dtool::host
