// SPDX-License-Identifier: MIT
// The logs of single ranks, where a machine has several: a file for each rank as its program wrote
// it, and marks (`r3: `) before their lines in the machine's log. The processes of a run write
// them, and all readers of logs read them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace dtool::host {

/// How the lines of a rank stand in its machine's log: behind marks, or alone there without any.
enum class RankLines { marked, alone };

/// `r3: `, which begins each line of rank 3 in the log of a machine with several ranks.
std::string rank_mark(int rank);

/// A line of such a log: its rank (nothing: dtool's own line, or one from before the ranks began),
/// and the line without the mark.
struct MarkedLine {
  std::optional<int> rank;
  std::string_view text;
};
MarkedLine read_mark(std::string_view line);

/// All lines of a text without marks.
std::string without_marks(std::string_view text);

/// The folder for the files of a machine's ranks, beside its log: `machine0.ranks` beside
/// `machine0.log`; empty if the state folder has no link to a log.
std::string rank_folder(const std::string& state);

/// The file in it: `r3.log`, and for a later attempt `r3.attempt2.log`.
std::string rank_log(const std::string& state, int attempt, int rank);

/// The ranks whose lines are in a machine's log.
struct LogRanks {
  std::set<int> ranks = {};
  bool are_marked = false;
};

/// Notes a rank in the state folder's file log_ranks, a line for each: `marked 3`. The disk may be
/// full: then it is left out.
void note_log_rank(const std::string& state, int rank, RankLines lines);
LogRanks read_log_ranks(const std::string& state);

// When a log grew: the file log_times of a job's state folder. So `dtool logs --since` finds a
// time, and the lines of the log stay as the program wrote them.

/// Notes the size of the log `state`/log with the time, as a line `SECONDS SIZE` of 31 bytes, if
/// the log has grown and nobody has noted it within this second. Call it once a second. A log that
/// is shorter than before, because it was truncated or rotated, begins a new file. Whoever starts a
/// job leaves an empty file, because the log may be asked for before it has grown.
void note_log_time(const std::string& state);

/// The size that the log had `age_s` seconds ago, within a second. Throws std::runtime_error if no
/// times are recorded.
std::uint64_t log_size_then(const std::string& state, std::int64_t age_s);

}  // namespace dtool::host
