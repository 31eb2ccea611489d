// Rank 0's lines on standard output, and under them, where that is a terminal, one that is drawn
// over and over in place.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace dtool::trainer {

/// A console without a bar is as good as a file: every line is flushed at once, for somebody may
/// follow it.
class Console {
 public:
  Console();
  ~Console();  ///< leaves the bar as it is, and the cursor on the line below
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// False for files, pipes and terminals that cannot clear a line (`TERM=dumb`).
  bool has_bar() const { return has_bar_; }

  /// Above the bar, which comes back when it is next drawn. While the user has stopped a terminal
  /// with a bar (Ctrl-S) it is kept until later, for the training should not wait.
  void line(const std::string& text);

  /// Draws what `bar` makes of the number of columns, at most ten times a second: called often, it
  /// costs a look at the clock. Draws nothing while the terminal is stopped or another program has
  /// it.
  void draw(const std::function<std::string(int columns)>& bar);

 private:
  bool has_bar_ = false;
  bool drawn_ = false;
  std::string kept_;  ///< lines for later
  std::chrono::steady_clock::time_point next_{};
};

/// What makes room for a message on standard error where a process that was killed may have left a
/// bar: empty unless both are terminals.
const char* over_the_bar();

}  // namespace dtool::trainer
