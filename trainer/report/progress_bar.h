// SPDX-License-Identifier: MIT
// The text of the bar at the bottom of a terminal; trainer/report/console.h draws it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace dtool::trainer {

/// The averages of a log point, over all ranks.
struct Averages {
  double loss = 0;
  double learning_rate = 0;
  double samples_per_second = 0;
};

struct BarState {
  std::string epoch;                 ///< as `2/5`; empty: none
  std::int64_t step = 0;             ///< since the run's first
  double done = 0;                   ///< of the whole run, 0 to 1
  std::optional<Averages> averages;  ///< of the last log point
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

}  // namespace dtool::trainer
