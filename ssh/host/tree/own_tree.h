// SPDX-License-Identifier: MIT
// A run's own tree: the folder `~/.dtool/runs/RUN/tree` in which its processes work. It is made
// once, from the code folder as it was sent. Whatever an editor, a later run or another launcher
// does to the code folder, all that the run starts later finds what the run was started with.
//
// The tree has the code, and links to what else is in the code folder. What the run's processes
// write there is theirs; remove_tree.h keeps it when the tree goes.
#pragma once

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

}  // namespace dtool::host
