// A run's token and what proves that one knows it, for the fuzz tests of what its machines say.
#pragma once

#include <string>

#include "ssh/machine/sha256.h"

namespace dtool::fuzz {

inline const std::string kToken = "0123456789abcdef0123456789abcdef";

/// HMAC-SHA256 (RFC 2104) with the run's token, in hex.
inline std::string mac(const std::string& text) {
  const auto hash = [](const std::string& bytes) {
    ssh::Sha256 sum;
    sum.add(bytes);
    return sum.hex();
  };
  const auto padded = [](char pad) {
    std::string key = kToken + std::string(64 - kToken.size(), '\0');
    for (char& each : key) each = static_cast<char>(each ^ pad);
    return key;
  };
  std::string inner;
  const std::string hex = hash(padded(0x36) + text);
  for (std::size_t i = 0; i < hex.size(); i += 2)
    inner += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return hash(padded(0x5c) + inner);
}

}  // namespace dtool::fuzz
