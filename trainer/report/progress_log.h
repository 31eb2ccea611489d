// SPDX-License-Identifier: MIT
// Rank 0's reports while it trains: on the console, in metrics.jsonl and for TensorBoard.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/report/console.h"
#include "trainer/report/metrics.h"

namespace dtool::trainer {

// The text of the bar at the bottom of a terminal; trainer/report/console.h draws it.

/// The averages of a log point, over all ranks.
struct Averages {
  double loss = 0;
  double learning_rate = 0;
  double samples_per_second = 0;
};

struct BarState {
  std::string epoch;                 ///< the epoch in the form `2/5`; empty: none
  std::int64_t step = 0;             ///< the step, counted since the run's first
  double done = 0;                   ///< the share of the whole run that is done, 0 to 1
  std::optional<Averages> averages;  ///< the averages of the last log point
  std::optional<std::chrono::seconds> left;
};

/// One line of at most `columns` characters, such as `epoch 2/5 [=====>      ] step 1400 loss
/// 0.1873 lr 0.001 samples/s 225k 3:12 left`. Parts that do not fit are left out, the learning rate
/// first.
std::string progress_bar(const BarState& state, int columns);

/// A duration for people: `3 min 12 s`, `2 h 5 min`, `4 d 3 h`.
std::string in_words(std::chrono::seconds duration);

/// The remaining time if the part `done_now - done_at_start` of the work took `elapsed` and the
/// pace stays the same. Absent before there is a pace, or if the time is too long to show.
std::optional<std::chrono::seconds> time_left(std::chrono::duration<double> elapsed,
                                              double done_at_start, double done_now);

/// The numbers of an evaluation by name, such as `test_accuracy`; the last one is the score.
using Scores = std::vector<std::pair<std::string, double>>;

/// The progress of the run.
struct Position {
  std::int64_t epoch = 0;   ///< the current epoch, from 1; 0 if there are none
  std::int64_t epochs = 0;  ///< the epochs of the experiment; 0 if its length is in steps
  std::int64_t step = 0;    ///< the step, counted since the run's first
  double done = 0;          ///< the share of the whole run that is done, 0 to 1
};

/// Averages since the last line, over all ranks.
struct Report {
  Position position;
  double loss = 0;
  double learning_rate = 0;
  double samples_per_second = 0;
  Scores scores;  ///< the scores of a test, if there was one, or of the samples just trained on
  Scores details = {};  ///< numbers that the console omits
};

/// How a run begins.
struct RunStart {
  std::uint64_t seed = 0;
  int world_size = 0;
  std::string resumed_from;  ///< empty: not resumed
  std::int64_t step = 0;     ///< steps done by the run that was resumed
  double done = 0;           ///< the share of the whole run that is done at the start
};

enum class TensorBoard { off, on };

/// Owned by rank 0.
class ProgressLog {
 public:
  /// Throws std::system_error if a file cannot be made. TensorBoard's file is in the folder
  /// `tensorboard` of `output_dir`.
  ProgressLog(const std::filesystem::path& output_dir, TensorBoard tensorboard,
              const RunStart& start);

  /// Call it at every step: without a bar it costs nothing, else a look at the clock.
  void tick(const Position& position);
  void step(const Report& report);
  void epoch(const Report& report);
  void validation(const Position& position, const Scores& scores);
  void note(const std::string& text);  ///< console only
  void finish(const Scores& scores);   ///< the console's last line

 private:
  void append(const std::string& event, const Position& position,
              std::vector<std::pair<std::string, double>> numbers);
  std::optional<std::chrono::seconds> left(double done) const;

  TrainingConsole console_;
  MetricsFile file_;
  std::optional<EventFile> events_;
  double done_at_start_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::optional<Averages> averages_;  ///< the averages for the bar
};

}  // namespace dtool::trainer
