// SPDX-License-Identifier: MIT
// Reads OpenSSH's times: numbers with a unit each, added up.
#include "ssh/config/config_time.h"

#include <charconv>
#include <cstdint>

namespace dtool::ssh {
namespace {

constexpr std::int64_t kMostSeconds = 366LL * 24 * 3600;

std::int64_t seconds_in(char unit) {
  switch (unit) {
    case 's':
    case 'S':
      return 1;
    case 'm':
    case 'M':
      return 60;
    case 'h':
    case 'H':
      return 3600;
    case 'd':
    case 'D':
      return 24 * 3600;
    case 'w':
    case 'W':
      return 7 * 24 * 3600;
    default:
      return 0;
  }
}

}  // namespace

std::optional<std::chrono::seconds> read_config_time(std::string_view text) {
  std::int64_t total = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    std::int64_t count = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || count < 0 || count > kMostSeconds) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    const std::int64_t unit = text.empty() ? 1 : seconds_in(text.front());
    if (unit == 0) return std::nullopt;
    if (!text.empty()) text.remove_prefix(1);
    total += count * unit;
    if (total > kMostSeconds) return std::nullopt;
  }
  return std::chrono::seconds(total);
}

}  // namespace dtool::ssh
