// SPDX-License-Identifier: MIT
// Numbers in texts from outside: variables, flags, requests, names of files.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace dtool::host {

/// The number that is all of the word; nothing if the word has another form or the number does not
/// fit. Blanks and a leading '+' are refused.
template <typename Number>
std::optional<Number> parse_number(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool is_all = error == std::errc() && end == word.data() + word.size();
  return is_all ? std::optional(number) : std::nullopt;
}

}  // namespace dtool::host
