// SPDX-License-Identifier: MIT
// Unpacks a package into a folder. All files are first unpacked aside. Only when they are complete
// do they move to their places together.
#pragma once

#include <functional>
#include <optional>

#include "ssh/host/frames.h"
#include "ssh/host/messages/tree.h"
#include "sync/host/tree_folder.h"
#include "sync/relay/host/package_server.h"

namespace dtool::host {

/// Called with news for the launcher, before the final answer.
using TellNews = std::function<void(const TreeNews&)>;

/// Unpacks the package that follows the request, or the one that another host has. The caller holds
/// the folder's lock, and has found the package's basis there. A failure is reported in the answer:
/// rsync then sends the tree, and explains the fault better. `server` serves the package on to
/// other hosts, for as long as it is there; it is made if hosts pass the package on and there is
/// none.
Unpacked unpack(TreeFolder& folder, const TreeRequest& request, FrameInput& input,
                const TellNews& tell, std::optional<PackageServer>& server);

}  // namespace dtool::host
