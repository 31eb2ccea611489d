// ChaCha20 (RFC 8439): seals what hosts pass on to hosts over open connections. That nobody has
// changed it is for a checksum to say.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dtool::host {

class Cipher {
 public:
  /// A key is for one message. Its text may be of any length; 256 bits of its SHA-256 are used.
  explicit Cipher(std::string_view key);
  /// With the 32 bytes of a key, and a number that is used once.
  Cipher(std::string_view key, std::string_view nonce, std::uint32_t counter);

  /// Seals or opens the next bytes of the message.
  void apply(char* bytes, std::size_t size);

 private:
  void make_block();

  std::array<std::uint32_t, 16> state_{};
  std::array<std::uint8_t, 64> block_{};
  std::size_t used_ = 64;  ///< of the block
};

}  // namespace dtool::host
