// SPDX-License-Identifier: MIT
// Which line at the end of a program's output says why it ended. What follows that line (rules,
// warnings, a launcher's summary) is passed over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtool::host {

/// The last line that explains something, cut at 500 bytes; without one, the last that is not
/// blank; or an empty text. Lines of dtool's own are to be left out before.
std::string explaining_line(std::string_view text);

/// `ValueError: …`, `torch.OutOfMemoryError: …`, `KeyboardInterrupt`
bool is_exception(std::string_view line);

/// Whether the line says that another process is gone (`Connection closed by peer`), so that the
/// cause is to be found there.
bool marks_a_victim(std::string_view line);

// Which machine and rank the cause of a run's failure names: the file cause_place of a job's state
// folder. The sentence itself is the file cause, for people.

struct CausePlace {
  int machine = 0;               ///< its number in the run
  std::optional<int> rank = {};  ///< absent: none of its ranks, or it is not known which

  void fields(auto visit) { visit(machine, rank); }
  bool operator==(const CausePlace&) const = default;
};

inline constexpr const char* kCausePlaceFile = "cause_place";

/// `MACHINE RANK` or `MACHINE`, as the file has it.
std::string to_line(const CausePlace& place);
/// Nothing if it is malformed. Runs of earlier versions have no such file.
std::optional<CausePlace> parse_cause_place(std::string_view line);

// The failure after which a run was started again: the file earlier_failure of a job's state
// folder. The session, or a scheduler's job, writes it before each restart.

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
