// The only way to the terminal: answers on standard output, everything about the work itself on
// standard error. An answer that cannot be written is an OutputLost; what standard error does not
// take is dropped.
//
// All text that is shown may have come from a host, a server before log-in or a file of somebody
// else's, so all of it passes one gate: what would steer the terminal is shown instead (printable()
// in cli/terminal_text.h). dtool's own colours are marks that only styled() can make, and the gate
// alone turns into colours; its own sequences are literals of the program (OwnSequence).
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace dtool::cli {

enum class Color { automatic, always, never };
enum class Style { plain, bold, dim, red, green, yellow, blue, magenta, cyan };

/// What the flags that every command has asked for.
struct ConsoleOptions {
  Color color = Color::automatic;
  bool json = false;   ///< one JSON document on standard output, nothing else there
  bool quiet = false;  ///< no progress and no summaries; answers and failures stay
};

/// An answer that could not be written, so that the loss does not look like success.
class OutputLost : public std::system_error {
 public:
  explicit OutputLost(int error)
      : std::system_error(error, std::generic_category(), "cannot write the output") {}
  /// As `head` does when it has seen enough; no news for the user.
  bool reader_left() const { return code() == std::errc::broken_pipe; }
};

/// Characters that a terminal has room for.
struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// Of the terminal `fd`; as above where it does not tell, or is none. Never 0.
TerminalSize terminal_size(int fd);

/// What steers the terminal and is dtool's own: a literal of the program, no text from outside.
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

  /// A line of the answer, on standard output. Not called with --json.
  void say(std::string_view line);
  /// Lines of the answer.
  void write(std::string_view lines);

  /// What programs on hosts printed. A terminal is shown it as text
  /// with colours, where it takes any; a file or a pipe gets the programs' bytes as they are.
  void pass_on(To to, std::string_view lines);
  /// One line of such text, for pass_on: on a terminal what stands there last, where a program drew
  /// over it with carriage returns.
  std::string as_passed_on(To to, std::string_view label, std::string_view line) const;
  /// The one document of --json.
  void document(const nlohmann::json& json);

  /// A line about the work, on standard error; left out with --quiet.
  void note(std::string_view line);
  /// `dtool: line`, on standard error, always; with a `hint:` line where there is one.
  void fail(std::string_view line, std::string_view hint = {});

  /// Lines that belong to a failure, on standard error, always.
  void complain(std::string_view lines);

  /// Replaces what it showed before on a terminal (standard error); nothing elsewhere, nor with
  /// --quiet. Rows beyond the terminal's height are counted in the last one. Empty: clears it.
  void live(const std::vector<std::string>& rows);
  /// One row of it.
  void progress(std::string_view line);

  /// Steers the terminal.
  void steer(To to, OwnSequence sequence);
  /// Draws the lines from the terminal's upper left corner, on standard output, and clears the
  /// rest.
  void draw(const std::vector<std::string>& lines);

  /// Asks on the terminal. Nothing if standard input is none, so that nobody answers.
  std::optional<bool> ask(std::string_view question);

  /// `text` in that style where the stream takes colours: for the calls above, which alone show it.
  std::string styled(Style style, std::string_view text) const;
  std::string styled_error(Style style, std::string_view text) const;

 private:
  void clear_live();
  void write_answer(std::string_view bytes);
  bool takes_color(To to) const { return to == To::out ? color_out_ : color_err_; }
  bool is_terminal(To to) const { return to == To::out ? out_is_terminal_ : err_is_terminal_; }

  ConsoleOptions options_;
  bool color_out_ = false;
  bool color_err_ = false;
  bool out_is_terminal_ = false;
  bool err_is_terminal_ = false;
  std::size_t live_rows_ = 0;  ///< on the terminal now
};

}  // namespace dtool::cli
