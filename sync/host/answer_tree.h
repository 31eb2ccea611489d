// SPDX-License-Identifier: MIT
// Both messages of a push: how much of a tree has this host, and, once asked, the package. A
// package that fits is unpacked at once. If nothing has changed since the last push, the host does
// no more than stat each file, once.
#pragma once

#include <optional>

#include "ssh/host/frames.h"
#include "ssh/host/messages/tree.h"
#include "sync/host/unpack.h"

namespace dtool::host {

/// Throws Refused (tree_folder.h). `input` may hold a package; one that does not fit is not read.
/// `server`: see unpack.h.
TreeReply answer_tree(const TreeRequest& request, FrameInput& input, const TellNews& tell,
                      std::optional<PackageServer>& server);

}  // namespace dtool::host
