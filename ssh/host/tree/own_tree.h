// SPDX-License-Identifier: MIT
// A run's own tree: the folder `~/.dtool/runs/RUN/tree` in which its processes work. It is made
// once, from the code folder as it was sent. Whatever an editor, a later run or another launcher
// does to the code folder, all that the run starts later finds what the run was started with.
//
// The tree has the code, and links to what else is in the code folder. What the run's processes
// write there is theirs, and is kept when the tree goes.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ssh/host/frame_input.h"
#include "ssh/host/tree/tree_folder.h"
#include "ssh/wire/tree.h"

namespace dtool::host {

/// What dtool notes in a tree that it has made.
struct TreeRecord {
  std::string written;  ///< OwnTree's
  /// The identities by name, as identity_of_copy() gives them.
  std::unordered_map<std::string, std::string> identities;
};

/// The record in a run's tree; nothing if there is none that is whole.
std::optional<TreeRecord> read_record(const std::string& tree);

/// A tree that is being made or deleted lies in the run's folder under a name that begins so.
inline constexpr std::string_view kTreeAside = ".tree.";
std::string new_name_aside();

/// Whether the run has its tree on this host. Hosts that share the home folder share the tree.
bool has_own_tree(const OwnTree& own);

/// Makes it of the folder's manifest, if it is not there. The caller holds the folder's lock. A
/// tree of at most 1,000 files and 8 MiB is copied. A larger one consists of hard links to dtool's
/// own copy of the code (kept_copy.h). Throws Refused; then nothing is left of it.
void make_own_tree(TreeFolder& folder, const OwnTree& own, const std::string& tree);

/// The same of a folder that needs no sending; the names of its files follow as a package.
FreezeReply freeze_tree(const FreezeRequest& request, FrameInput& input);

// The end of a run's own tree (remove_tree.cpp), and of what its processes wrote there: that is
// kept in the run's output folder.

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
