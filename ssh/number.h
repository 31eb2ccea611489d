// SPDX-License-Identifier: MIT
// Reads numbers from foreign text: hosts' answers, flags, lines of files.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace dtool::ssh {

/// The number that is all of `text`; nothing if the text has another form or the number does not
/// fit. Blanks and a leading '+' are refused.
template <typename Number>
std::optional<Number> read_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

/// The same for a TCP port, 1 to 65535.
inline std::optional<std::uint16_t> read_port(std::string_view text) {
  const auto port = read_number<std::uint16_t>(text);
  return port && *port != 0 ? port : std::nullopt;
}

}  // namespace dtool::ssh
