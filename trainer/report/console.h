// SPDX-License-Identifier: MIT
// Rank 0's lines on standard output. On a terminal there is also a bar below them, which is redrawn
// in place.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace dtool::trainer {

/// A console without a bar acts like a file: every line is flushed at once, because the file may be
/// followed.
class TrainingConsole {
 public:
  TrainingConsole();
  ~TrainingConsole();  ///< leaves the bar, and puts the cursor on the line below
  TrainingConsole(const TrainingConsole&) = delete;
  TrainingConsole& operator=(const TrainingConsole&) = delete;

  /// False for files, pipes and terminals that cannot clear a line (`TERM=dumb`).
  bool has_bar() const { return has_bar_; }

  /// Prints above the bar, which returns when it is next drawn. While the user has stopped a
  /// terminal with a bar (Ctrl-S), lines are kept for later, so that the training does not wait.
  void line(const std::string& text);

  /// Draws the bar: the text of `bar` for that number of columns, at most ten times a second. Other
  /// calls cost only a look at the clock. Draws nothing while the terminal is stopped or another
  /// program has it.
  void draw(const std::function<std::string(int columns)>& bar);

 private:
  bool has_bar_ = false;
  bool drawn_ = false;
  std::string kept_;  ///< lines kept for later
  std::chrono::steady_clock::time_point next_{};
};

/// A control sequence that clears the bar of a killed process before a message on standard error;
/// empty unless both streams are terminals.
const char* over_the_bar();

}  // namespace dtool::trainer
