// SPDX-License-Identifier: MIT
// Makes one text of what several ranks write: whole lines, each behind the mark of its rank
// (ssh/host/rank_log.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/session/report.h"

namespace dtool::host {

class LineMerger {
 public:
  /// A line beyond it becomes several lines.
  static constexpr std::size_t kLongestLine = 256U << 10U;

  explicit LineMerger(const std::vector<int>& ranks);

  /// Takes bytes of the rank at that place of `ranks`. Of a line that its program redraws with
  /// carriage returns only states are kept: one every five seconds, and the last.
  void add(std::size_t which, std::string_view bytes, Time now);
  /// The rank has ended: a line without an end is complete.
  void end(std::size_t which);
  /// How many of its bytes are of a line that is not complete.
  std::uint64_t held(std::size_t which) const { return ranks_[which].held; }
  /// The text that is complete. The caller takes it.
  std::string& text() { return text_; }

 private:
  struct Rank {
    std::string mark;
    std::string open;     ///< line without its end, from its last carriage return on
    std::string redrawn;  ///< its state before that
    Time shown{};         ///< when such a state was last shown
    std::uint64_t held = 0;
  };

  void add_part(Rank& rank, std::string_view part, Time now);
  void show_state(Rank& rank, Time now);
  void end_line(Rank& rank);

  std::vector<Rank> ranks_;
  std::string text_;
};

}  // namespace dtool::host
