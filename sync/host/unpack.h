// How a package takes its place in a folder: all that comes is unpacked aside, and only when it is
// whole do the new files take their places together.
#pragma once

#include <functional>

#include "ssh/host/frames.h"
#include "ssh/host/protocol.h"
#include "sync/host/tree_folder.h"

namespace dtool::host {

/// Is told what the launcher has to know before the answer.
using TellNews = std::function<void(const TreeNews&)>;

/// Unpacks what follows the request, or what another host has. Whoever calls has the folder's lock,
/// and found the tree there from which the package leads. What goes wrong is told in the answer:
/// rsync then does it in its own way, and tells better what is wrong.
Unpacked unpack(TreeFolder& folder, const TreeRequest& request, FrameInput& input,
                const TellNews& tell);

}  // namespace dtool::host
