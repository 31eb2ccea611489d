// SPDX-License-Identifier: MIT
// The end of a run's own tree (own_tree.h), and of what its processes wrote there: that is kept in
// the run's output folder.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "ssh/wire/tree.h"

namespace dtool::host {

/// Puts the files that the run's processes wrote or changed in their tree into the folder that the
/// run has for them, as further names of the same files, or as copies on another disk. The tree
/// stays. Returns that folder; empty if there are no such files. Throws Refused.
std::string keep_written(const std::string& run_id);

/// Deletes a run's tree, and with it the run's folder if that is asked for or if nothing else is
/// there. What the processes wrote is kept first. Throws Refused if it cannot be kept; then the
/// tree stays.
RemoveReply remove_run(const RemoveRequest& request);

/// What nothing has used for so long is deleted without being asked.
inline constexpr std::int64_t kUnusedForLong = 30 * 86400;  // seconds

/// Deletes trees of runs that ended so many seconds ago, copies and stored trees that no run has
/// used since, and what was made for runs that never started. It takes long.
void remove_old_trees(std::int64_t unused = kUnusedForLong);

/// When the run's last machine ended, by its folder; nothing if one has not, or if that is unknown.
std::optional<time_t> end_of_run(const std::string& run);

}  // namespace dtool::host
