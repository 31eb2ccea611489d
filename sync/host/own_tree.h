// SPDX-License-Identifier: MIT
// A run's own tree: the folder `~/.dtool/runs/RUN/tree` in which its processes work. It is made
// once, from the code folder as it was sent. Whatever an editor, a later run or another launcher
// does to the code folder, all that the run starts later finds what the run was started with.
//   RUN/tree        the code; links to what else is in the code folder; what the run's processes
//                   write
//   RUN/tree.files  the names of what dtool put there, and how each file is recognised
#pragma once

#include <string>

#include "ssh/host/frames.h"
#include "ssh/host/protocol.h"
#include "sync/host/tree_folder.h"

namespace dtool::host {

/// Whether the run has its tree on this host. Hosts that share the home folder share the tree.
bool has_own_tree(const OwnTree& own);

/// Makes it of the folder's manifest, if it is not there. The caller holds the folder's lock. A
/// tree of at most 1,000 files and 8 MiB is copied. A larger one consists of hard links to dtool's
/// own copy of the code (kept_copy.h). Throws Refused; then nothing is left of it.
void make_own_tree(TreeFolder& folder, const OwnTree& own, const std::string& tree);

/// The same of a folder that needs no sending; the names of its files follow as a package.
FreezeReply freeze_tree(const FreezeRequest& request, FrameInput& input);

/// Deletes a run's tree, and with it the run's folder if that is asked for or if nothing else is
/// there. What the run's processes wrote or changed is kept in `~/.dtool/written/RUN`.
RemoveReply remove_run(const RemoveRequest& request);

/// Deletes trees of runs that ended 30 days ago, and what was made for runs that never started.
/// What the runs' processes wrote is kept. It works in a process of its own, since deleting takes
/// long.
void remove_old_trees();

}  // namespace dtool::host
