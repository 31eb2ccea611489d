// The file that TensorBoard reads: events, each a protocol buffer in a record with checksums
// (tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/report/append_file.h"

namespace dtool::trainer {

/// Named numbers, the curves that they belong to.
using Scalars = std::vector<std::pair<std::string, double>>;

/// One run's events. Each is appended whole and at once, so that a killed run leaves at most one
/// half record, at the end, where TensorBoard expects it.
class EventFile {
 public:
  /// Makes `folder` and in it `events.out.tfevents.<seconds>.<host>.<process>.<number>`. What
  /// earlier files of the folder tell of step `first_step` and later ones is void from now on: so a
  /// curve that was resumed, or begun anew, is drawn once. Throws std::system_error.
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
