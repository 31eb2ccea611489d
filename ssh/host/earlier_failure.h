// SPDX-License-Identifier: MIT
// The failure after which a run was started again: the file earlier_failure of a job's state
// folder. The session, or a scheduler's job, writes it before each restart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtool::host {

// Which machine and rank the cause of a run's failure names: the file cause_place of a job's state
// folder. The sentence itself is the file cause, for people.

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

struct EarlierFailure {
  int attempt = 0;              ///< the number of the attempt that failed, counted from 0
  std::uint64_t log_bytes = 0;  ///< how long this machine's log was at the end of that attempt
  std::optional<CausePlace> place = {};  ///< nothing: not known
  std::string text = {};                 ///< the cause, one line

  bool operator==(const EarlierFailure&) const = default;
};

inline constexpr const char* kEarlierFailureFile = "earlier_failure";

/// Two lines, as the file has them: `ATTEMPT LOG_BYTES`, then as cause_place has it; the cause.
std::string to_text(const EarlierFailure& failure);
/// Nothing if it is malformed.
std::optional<EarlierFailure> parse_earlier_failure(std::string_view text);

}  // namespace dtool::host
