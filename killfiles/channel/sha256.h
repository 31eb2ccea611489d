// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104) for dtool-host, which links no library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dtool::host {

using Digest = std::array<std::uint8_t, 32>;

/// The SHA-256 of bytes that come in pieces.
class Sha256 {
 public:
  /// `plain` leaves out the processor's own instructions for it.
  enum class Way { fastest, plain };
  Sha256() = default;
  explicit Sha256(Way way) : way_(way) {}

  void add(std::string_view bytes);
  /// The digest of all bytes that were added. The object must not be used after it.
  Digest finish();

  /// What it knows of the bytes so far, to go on from in another process of this program.
  std::string state() const;
  /// False, and nothing changes, if that is no state.
  bool go_on_from(std::string_view state);

 private:
  void add_block(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> block_{};
  std::uint64_t size_ = 0;
  Way way_ = Way::fastest;
};

Digest sha256(std::string_view bytes);
Digest hmac_sha256(std::string_view key, std::string_view bytes);

/// The digest's bytes; the view is valid while the digest lives.
inline std::string_view bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// Bytes in lower-case hex digits.
std::string to_hex(std::string_view bytes);
inline std::string to_hex(const Digest& digest) {
  return to_hex(bytes_of(digest));
}

/// Whether both are equal, in constant time.
bool are_equal(std::string_view one, std::string_view other);

}  // namespace dtool::host
