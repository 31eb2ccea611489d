// SPDX-License-Identifier: MIT
// Makes foreign text safe for a terminal.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dtool::killfiles {

/// What may stay besides printable characters.
enum class Allowed {
  nothing,        ///< one line, without its end
  lines,          ///< ends of lines and tabs
  colored_lines,  ///< ends of lines, tabs and colours: ESC [ NUMBERS m
  bare_lines,     ///< the same as `lines`; colours are removed
};

/// `text` as a terminal can show it without obeying it. Control characters and bytes that are not
/// UTF-8 become `\x1b`; the controls U+0080 to U+009F and those that change the direction of
/// writing become `\u202e`. Printable text stays as it is.
std::string printable(std::string_view text, Allowed kept);

/// At most the first `longest` bytes of `text`, made printable on one line, with an ellipsis if
/// something is left out.
std::string printable_start(std::string_view text, std::size_t longest);

/// The same for what a program said: without the line ends and blanks at its end.
std::string printable_words(std::string_view text, std::size_t longest);

/// A character of UTF-8, or one byte that begins none.
struct Character {
  std::size_t size = 1;
  std::optional<char32_t> code;  ///< absent: no UTF-8
};

/// What begins at that place of `text`, which is not its end.
Character character_at(std::string_view text, std::size_t at);

}  // namespace dtool::killfiles
