// SPDX-License-Identifier: MIT
// What a host does before and after rsync.
#pragma once

#include "ssh/host/frames.h"
#include "ssh/host/messages/tree.h"

namespace dtool::host {

/// Both throw Refused (tree_folder.h).
PrepareReply prepare_tree(const PrepareRequest& request, FrameInput& input);
PruneReply prune_tree(const PruneRequest& request);

}  // namespace dtool::host
