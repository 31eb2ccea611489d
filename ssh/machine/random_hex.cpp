// SPDX-License-Identifier: MIT
#include "ssh/machine/random_hex.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace dtool::ssh {

std::string random_hex(std::size_t bytes) {
  std::string text;
  while (text.size() < 2 * bytes) {
    std::array<unsigned char, 32> some{};  // the kernel gives so few in one piece
    if (::getrandom(some.data(), some.size(), 0) < 0)
      throw std::system_error(errno, std::generic_category(), "getrandom");
    for (const unsigned char byte : some) text += fmt::format("{:02x}", byte);
  }
  text.resize(2 * bytes);
  return text;
}

}  // namespace dtool::ssh
