// SPDX-License-Identifier: MIT
// The failure after which a run was started again: the file earlier_failure of a job's state
// folder. The session, or a scheduler's job, writes it before each restart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/host/cause_place.h"

namespace dtool::host {

struct EarlierFailure {
  int attempt = 0;              ///< that failed, from 0
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
