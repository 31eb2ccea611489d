// SPDX-License-Identifier: MIT
// Which machine and rank the cause of a run's failure names: the file cause_place of a job's state
// folder. The sentence itself is the file cause, for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dtool::host {

struct CausePlace {
  int machine = 0;               ///< its number in the run
  std::optional<int> rank = {};  ///< absent: none of its ranks, or it is not known which

  bool operator==(const CausePlace&) const = default;
};

inline constexpr const char* kCausePlaceFile = "cause_place";

/// `MACHINE RANK` or `MACHINE`, as the file has it.
std::string to_line(const CausePlace& place);
/// Nothing if it is malformed. Runs of earlier versions have no such file.
std::optional<CausePlace> parse_cause_place(std::string_view line);

}  // namespace dtool::host
