// SPDX-License-Identifier: MIT
// Rank 0's lines on standard output, and those of downloads. On a terminal there is also a bar
// below them, which is redrawn in place.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

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

// Shows the progress of a download or copy: a bar on a terminal, occasional lines in a log.

/// `9.6 MB`, in powers of ten.
std::string human_bytes(std::int64_t bytes);

/// How far a transfer is.
struct TransferState {
  std::string name{};
  std::int64_t begun_with = 0;  ///< bytes that were here before
  std::int64_t done = 0;        ///< bytes that are here
  std::optional<std::int64_t> total{};
  std::chrono::duration<double> passed{};
};

enum class TransferBar { no, yes };

/// `a  50 % of 2.0 MB  1.0 MB/s`, with a bar after the name.
std::string transfer_text(const TransferState& state, TransferBar bar);

/// Writes to stdout.
class TransferProgress {
 public:
  /// `prefix` precedes each line, such as `red02: `.
  explicit TransferProgress(std::string prefix) : prefix_(std::move(prefix)) {}

  /// A new file begins, of which `done` bytes are here.
  void begin(const std::string& name, std::int64_t done);
  /// Shows the progress if it is time to.
  void update(std::int64_t done, std::optional<std::int64_t> total);
  /// The file is complete: prints one line with its size, `source` and time.
  void finish(std::int64_t size, const std::string& source);
  /// Prints a separate line.
  void say(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  std::string prefix_;
  TrainingConsole console_;
  std::string name_;
  std::int64_t begun_with_ = 0;
  Clock::time_point begin_{};
  Clock::time_point shown_{};
};

/// A control sequence that clears the bar of a killed process before a message on standard error;
/// empty unless both streams are terminals.
const char* over_the_bar();

}  // namespace dtool::trainer
