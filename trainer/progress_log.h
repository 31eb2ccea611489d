// What rank 0 tells while it trains: lines on the console and in metrics.jsonl.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trainer/metrics.h"

namespace dtool::trainer {

/// Averages since the last line, over all ranks.
struct Report {
  std::int64_t epoch = 0;   ///< the one being trained, from 1
  std::int64_t epochs = 0;  ///< of the experiment
  std::int64_t step = 0;    ///< since the run's first
  double loss = 0;
  double learning_rate = 0;
  double samples_per_second = 0;
  std::optional<double> test_accuracy;
};

/// Owned by rank 0.
class ProgressLog {
 public:
  explicit ProgressLog(const std::filesystem::path& output_dir);

  /// The first line of a run in the file: which seed, how many ranks, resumed from what (empty:
  /// nothing).
  void start(std::uint64_t seed, int world_size, const std::string& resumed_from);
  void step(const Report& report);
  void epoch(const Report& report);
  void note(const std::string& text);  ///< console only
  void finish(double test_accuracy);   ///< the console's last line

 private:
  void append(const char* event, const Report& report);

  MetricsFile file_;
};

}  // namespace dtool::trainer
