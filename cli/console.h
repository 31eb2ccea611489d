// The only way to the terminal: answers on standard output, everything about the work itself on
// standard error. An answer that cannot be written is an OutputLost; what standard error does not
// take is dropped.
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

class Console {
 public:
  void configure(const ConsoleOptions& options);

  bool json() const { return options_.json; }
  bool quiet() const { return options_.quiet; }

  /// A line of the answer, on standard output. Not called with --json.
  void say(std::string_view line);
  /// Bytes of the answer as they are.
  void write(std::string_view bytes);
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

  /// Asks on the terminal. Nothing where standard input is none, so that nobody answers.
  std::optional<bool> ask(std::string_view question);

  /// `text` in that style where the stream takes colours.
  std::string styled(Style style, std::string_view text) const;
  std::string styled_error(Style style, std::string_view text) const;

 private:
  void clear_live();

  ConsoleOptions options_;
  bool color_out_ = false;
  bool color_err_ = false;
  bool err_is_terminal_ = false;
  std::size_t live_rows_ = 0;  ///< on the terminal now
};

}  // namespace dtool::cli
