// Text that programs of the host print, cut into words and matched.
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

/// Takes the first line off a text and returns it without its end.
std::string_view cut_line(std::string_view& text);

/// Takes the first word off a line: what stands before the next blank. Empty if there is none.
std::string_view cut_word(std::string_view& line);

/// A number that is all of the word; nothing if it is not.
template <typename Number>
std::optional<Number> parse_number(std::string_view word) {
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || word.empty()) return std::nullopt;
  return number;
}

/// The number that is all of the word at that place. Throws std::runtime_error if there is none,
/// or it is not from `least` to `most`.
int number_among(const std::vector<std::string>& words, std::size_t at, int least, int most);

/// Bash that defines `answer NAME VALUE`, for launchers' own scripts: it prints a line for
/// read_pairs(); line ends in a value become blanks.
inline constexpr std::string_view kAnswerFunction =
    "answer() { printf '%s=%s\\n' \"$1\" \"${2//$'\\n'/ }\"; }\n";

/// `NAME=VALUE` lines; other lines are left out.
std::vector<std::pair<std::string, std::string>> read_pairs(std::string_view text);

}  // namespace dtool::host
