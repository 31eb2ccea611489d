// SPDX-License-Identifier: MIT
// The only way to the terminal: answers on standard output, everything about the work itself on
// standard error. An answer that cannot be written is an OutputLost; a message that cannot be
// written to standard error is dropped.
//
// All text may have come from a host, a server before login or a foreign file, so all of it passes
// one gate. The gate replaces everything that would steer the terminal by visible text (printable()
// in cli/console.h). dtool's own colours are marks that only styled() makes and only the gate
// turns into colours; its own control sequences are literals of the program (OwnSequence).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/large_texts.h"
#include "killfiles/printable.h"

namespace dtool::cli {

enum class Color { automatic, always, never };
enum class Style { plain, bold, dim, red, green, yellow, blue, magenta, cyan };

/// The values of the flags that every command has.
struct ConsoleOptions {
  Color color = Color::automatic;
  bool json = false;   ///< print one JSON document on standard output and nothing else there
  bool quiet = false;  ///< print no progress and no summaries; answers and failures stay
};

/// An answer could not be written. The exception keeps the loss from looking like success.
class OutputLost : public std::system_error {
 public:
  explicit OutputLost(int error)
      : std::system_error(error, std::generic_category(), "cannot write the output") {}
  /// True if the reader closed the pipe, as `head` does; the user needs no message then.
  bool reader_left() const { return code() == std::errc::broken_pipe; }
};

/// The size of the terminal in characters.
struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// The size of the terminal `fd`; the defaults above if it is unknown or `fd` is not a terminal.
/// Never 0.
TerminalSize terminal_size(int fd);

/// A control sequence of dtool's own: a literal of the program, never foreign text.
class OwnSequence {
 public:
  consteval OwnSequence(const char* literal) : literal_(literal) {}
  std::string_view text() const { return literal_; }

 private:
  const char* literal_;
};

enum class To { out, err };

class Console {
 public:
  void configure(const ConsoleOptions& options);

  bool json() const { return options_.json; }
  bool quiet() const { return options_.quiet; }
  /// Whether standard output and standard error go to the same terminal, file or pipe.
  bool has_one_place() const;

  bool is_terminal(To to) const { return to == To::out ? out_is_terminal_ : err_is_terminal_; }

  /// Prints a line of the answer on standard output. Not called with --json. Like note, fail,
  /// complain and ask it breaks, on a terminal, what is longer than a line at blanks.
  void say(std::string_view line);
  /// Prints lines of the answer.
  void write(std::string_view lines);

  /// Prints the output of programs on hosts. A terminal gets it as text, with colours if it
  /// supports them; a file or a pipe gets the bytes unchanged.
  void pass_on(To to, std::string_view lines);
  /// One line of such output, for pass_on. On a terminal only the last state is kept of a line that
  /// a program redrew with carriage returns.
  std::string as_passed_on(To to, std::string_view label, std::string_view line) const;
  /// Prints the one document of --json, with the texts in the places of their marks.
  void document(const nlohmann::json& json, const LargeTexts& texts = LargeTexts());

  /// Prints a line about the work on standard error; not with --quiet.
  void note(std::string_view line);
  /// Prints `dtool: line` on standard error, always; with a `hint:` line if there is a hint.
  void fail(std::string_view line, std::string_view hint = {});
  /// The same with what() of an exception of ours: a sentence, then perhaps a line `hint: …`.
  void fail(const std::exception& error);

  /// Prints further lines of a failure on standard error, always.
  void complain(std::string_view lines);

  /// Replaces the live rows on a terminal (standard error). Does nothing elsewhere, nor with
  /// --quiet. Rows that do not fit are counted in the last one. Empty: clears them.
  void live(const std::vector<std::string>& rows);
  /// The same with one row.
  void progress(std::string_view line);

  /// Sends a control sequence to the terminal.
  void steer(To to, OwnSequence sequence);
  /// Draws the lines from the terminal's upper left corner, on standard output, and clears the
  /// rest.
  void draw(const std::vector<std::string>& lines);

  /// Asks on the terminal. Nothing if standard input is not a terminal.
  std::optional<bool> ask(std::string_view question);

  /// `text` in that style if the stream supports colours. Pass the result only to the calls above.
  std::string styled(Style style, std::string_view text) const;
  std::string styled_error(Style style, std::string_view text) const;

 private:
  void clear_live();
  void write_answer(std::string_view bytes);
  bool takes_color(To to) const { return to == To::out ? color_out_ : color_err_; }

  ConsoleOptions options_;
  bool color_out_ = false;
  bool color_err_ = false;
  bool out_is_terminal_ = false;
  bool err_is_terminal_ = false;
  std::size_t live_rows_ = 0;  ///< shown on the terminal now
};

// Text for a terminal: without anything that would steer the terminal, and cut to the available
// width.

using killfiles::Allowed;
using killfiles::printable;

/// The final state of a line that a program redrew with carriage returns; its line end stays.
std::string as_drawn(std::string_view line);

/// How many columns of a terminal UTF-8 text takes; wide characters take two.
std::size_t length(std::string_view text);

/// The first `columns` columns of UTF-8 text; if some are left out, the last one is an ellipsis.
std::string cut(std::string_view text, std::size_t columns);

/// `text` with lines that take more than `columns` broken at blanks; a longer word stays whole, and
/// a colour takes no column. What goes on begins in the column that `indent_of` says of the line.
using IndentOf = std::size_t (*)(std::string_view line, std::size_t columns);
std::string wrapped(std::string_view text, std::size_t columns, IndentOf indent_of);

/// `text` without escape sequences and control characters; a tab becomes a blank. Other bytes that
/// a terminal would obey are shown as in printable().
std::string without_controls(std::string_view text);

/// `1 host`, `3 hosts`, `2 processes`: `noun` in singular or plural.
std::string counted(std::size_t number, std::string_view noun);

/// `59s`, `3m 20s`, `2h 05m`, `3d 04h`.
std::string duration_text(std::int64_t seconds);

}  // namespace dtool::cli
