// The gate for text that came from outside and goes to a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtool::ssh {

/// What a terminal may be given beside printable characters.
enum class Kept {
  nothing,        ///< one line: not even its end
  lines,          ///< ends of lines and tabs
  colored_lines,  ///< and colours: ESC [ NUMBERS m
  bare_lines,     ///< as lines; colours are left out
};

/// `text` as a terminal can show it without obeying it. What would steer it is shown instead:
/// control characters and bytes that are no UTF-8 as `\x1b`, the controls U+0080 to U+009F and
/// those that turn the direction of writing as `\u202e`. Text that is printable stays as it is.
std::string printable(std::string_view text, Kept kept);

/// The first `longest` bytes of `text` or a few less, as printable() shows them in one line, with
/// an ellipsis where something is left out.
std::string printable_start(std::string_view text, std::size_t longest);

}  // namespace dtool::ssh
