// SPDX-License-Identifier: MIT
// Cuts text that programs of the host print into words, and matches it.
#pragma once

#include <sys/types.h>

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtool::host {

/// Removes a text up to the first `end`, and that, and returns it without `end`. All of the text if
/// `end` is not in it.
std::string_view cut(std::string_view& text, char end);

/// Removes the first line from a text and returns it without its end.
inline std::string_view cut_line(std::string_view& text) {
  return cut(text, '\n');
}

/// Removes the first word (up to the next blank) from a line. Empty if there is none.
std::string_view cut_word(std::string_view& line);

/// The parts of a text between the separators, empty ones too: one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The last line that has more than blanks, without those at its end. Lines that begin with
/// `passed_over`, if that is given, do not count. Empty if there is none.
std::string_view last_line(std::string_view text, std::string_view passed_over = {});

/// The text with ASCII's capital letters made small.
std::string to_lower(std::string_view text);

/// The text without its last line ends. Other line ends become blanks.
std::string as_line(std::string text);

/// The number that is all of the word; nothing if the word has another form or the number does not
/// fit. Blanks and a leading '+' are refused.
template <typename Number>
std::optional<Number> parse_number(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool is_all = error == std::errc() && end == word.data() + word.size();
  return is_all ? std::optional(number) : std::nullopt;
}

/// The same for a TCP port, 1 to 65535.
inline std::optional<std::uint16_t> parse_port(std::string_view text) {
  const auto port = parse_number<std::uint16_t>(text);
  return port && *port != 0 ? port : std::nullopt;
}

/// The number in the word at that place. Throws std::runtime_error if there is none, or it is not
/// from `least` to ten million: a count of a run's ranks, machines, processes or attempts.
int number_among(const std::vector<std::string>& words, std::size_t at, int least = 0);

/// Bash that defines `answer NAME VALUE` for launchers' own scripts: it prints a line for
/// read_pairs(). Line ends in a value become blanks.
inline constexpr std::string_view kAnswerFunction =
    "answer() { printf '%s=%s\\n' \"$1\" \"${2//$'\\n'/ }\"; }\n";

/// Reads `NAME=VALUE` lines; other lines are skipped.
std::vector<std::pair<std::string, std::string>> read_pairs(std::string_view text);

}  // namespace dtool::host
