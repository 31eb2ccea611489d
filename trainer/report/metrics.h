// SPDX-License-Identifier: MIT
// metrics.jsonl (one JSON object per line, for plots and other programs), and the file that
// TensorBoard reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/report/written_file.h"

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

// The file that TensorBoard reads: events, each a protocol buffer in a record with checksums
// (tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto).

/// Numbers with the names of their curves.
using Scalars = std::vector<std::pair<std::string, double>>;

/// One run's events. Each is appended at once as a whole, so that a killed run leaves at most one
/// partial record at the end, where TensorBoard expects it.
class EventFile {
 public:
  /// Makes `folder` and in it `events.out.tfevents.<seconds>.<host>.<process>.<number>`. Declares
  /// events of earlier files in the folder from step `first_step` on void, so that the curve of a
  /// resumed or restarted run is drawn only once. Throws std::system_error.
  EventFile(const std::filesystem::path& folder, std::int64_t first_step);

  void add(std::int64_t step, const Scalars& scalars);  ///< throws std::system_error

 private:
  AppendFile file_;
};

/// `data` with its length and the checksums of both.
std::string event_record(std::string_view data);

/// The cyclic redundancy check of RFC 3720, appendix B.4.
std::uint32_t crc32c(std::string_view data);

}  // namespace dtool::trainer
