// SPDX-License-Identifier: MIT
// Makes foreign text safe for a terminal.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace dtool::ssh {

/// What may stay besides printable characters.
enum class Kept {
  nothing,        ///< one line, without its end
  lines,          ///< ends of lines and tabs
  colored_lines,  ///< ends of lines, tabs and colours: ESC [ NUMBERS m
  bare_lines,     ///< the same as `lines`; colours are removed
};

/// `text` as a terminal can show it without obeying it. Control characters and bytes that are not
/// UTF-8 become `\x1b`; the controls U+0080 to U+009F and those that change the direction of
/// writing become `\u202e`. Printable text stays as it is.
std::string printable(std::string_view text, Kept kept);

/// At most the first `longest` bytes of `text`, made printable on one line, with an ellipsis if
/// something is left out.
std::string printable_start(std::string_view text, std::size_t longest);

/// The same for what a program said: without the line ends and blanks at its end.
std::string printable_words(std::string_view text, std::size_t longest);

// Lines for the user and questions to the user while hosts are being reached. This folder has no
// terminal of its own.

/// Sets where such lines go; until then they are dropped.
void give_notices_to(std::function<void(std::string_view)> taker);

/// Called from the event loop.
void notice(std::string_view line);

/// While it lives, the user is asked a question at the terminal, and nothing else may be drawn
/// there.
class OpenQuestion {
 public:
  OpenQuestion();
  ~OpenQuestion();
  OpenQuestion(const OpenQuestion&) = delete;
  OpenQuestion& operator=(const OpenQuestion&) = delete;
};

/// Whether there is such a question.
bool is_question_open();

}  // namespace dtool::ssh
