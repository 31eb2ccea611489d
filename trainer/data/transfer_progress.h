// SPDX-License-Identifier: MIT
// Shows the progress of a download or copy: a bar on a terminal, occasional lines in a log.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "trainer/report/console.h"

namespace dtool::trainer {

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

}  // namespace dtool::trainer
