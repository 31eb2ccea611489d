// The question of a push: what of a tree has this host? A package that fits takes its place at
// once. Where nothing has changed since the last push, one look at each file is all.
#pragma once

#include "ssh/host/frames.h"
#include "ssh/host/protocol.h"
#include "sync/host/unpack.h"

namespace dtool::host {

/// Throws Refused (tree_folder.h). `input` may have a package, which is left where it does not fit.
TreeReply answer_tree(const TreeRequest& request, FrameInput& input, const TellNews& tell);

}  // namespace dtool::host
