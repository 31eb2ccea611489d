// SPDX-License-Identifier: MIT
// How much of a tree has this host? A package that comes along and fits is unpacked at once. If
// nothing has changed since the last push, the host does no more than stat each file, once.
#pragma once

#include "ssh/host/frame_input.h"
#include "ssh/wire/push.h"
#include "ssh/wire/tree.h"

namespace dtool::host {

/// Throws Refused (tree_folder.h). `input` may hold a package; one that does not fit is not read.
TreeReply answer_tree(const TreeRequest& request, FrameInput& input);

/// Puts a code tree in its place whose files were brought aside, to where the folder's own are not
/// touched: a push that is interrupted leaves the old tree, and the next one goes on from there.
PlaceReply place_tree(const PlaceRequest& request);

// Checks whether the source of a `dtool fetch` exists.

/// Throws Refused (tree_folder.h).
LookReply look_at_source(const LookRequest& request);

}  // namespace dtool::host
