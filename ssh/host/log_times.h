// SPDX-License-Identifier: MIT
// When a log grew: the file log_times of a job's state folder. So `dtool logs --since` finds a
// time, and the lines of the log stay as the program wrote them.
#pragma once

#include <cstdint>
#include <string>

namespace dtool::host {

/// Notes the size of the log `state`/log with the time, as a line `SECONDS SIZE` of 31 bytes, if
/// the log has grown and nobody has noted it within this second. Call it once a second. A log that
/// is shorter than before, because it was truncated or rotated, begins a new file. Whoever starts a
/// job leaves an empty file, because the log may be asked for before it has grown.
void note_log_time(const std::string& state);

/// The size that the log had `age_s` seconds ago, within a second. Throws std::runtime_error if no
/// times are recorded.
std::uint64_t log_size_then(const std::string& state, std::int64_t age_s);

}  // namespace dtool::host
