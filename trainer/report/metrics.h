// SPDX-License-Identifier: MIT
// metrics.jsonl: one JSON object per line, for plots and other programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/report/append_file.h"

namespace dtool::trainer {

using Metric = std::variant<std::int64_t, std::uint64_t, double, std::string>;

/// One line's keys and values, in order. Keys need no escaping.
using MetricsLine = std::vector<std::pair<std::string, Metric>>;

/// The line as JSON, without a line break; nan and infinities become null.
std::string to_json(const MetricsLine& line);

/// Appends lines to a file, for rank 0. Each line is a single write, so that a reader never sees
/// half of one.
class MetricsFile {
 public:
  explicit MetricsFile(const std::filesystem::path& file);  ///< throws std::system_error
  void append(const MetricsLine& line);                     ///< throws std::system_error

 private:
  AppendFile file_;
};

}  // namespace dtool::trainer
