// SPDX-License-Identifier: MIT
// Takes a parcel of what `dtool copy` sends. A file grows aside, parcel by parcel, and goes to its
// place when its SHA-256 is proven.
#pragma once

#include <functional>

#include "ssh/host/frames.h"
#include "ssh/host/messages/copy.h"
#include "ssh/host/messages/tree.h"

namespace dtool::host {

/// `tell` is called with news for the launcher before the reply, if hosts pass the parcel on.
/// Throws Refused (sync/host/tree_folder.h) if something cannot be written.
ParcelReply take_parcel(const ParcelRequest& request, FrameInput& input,
                        const std::function<void(const TreeNews&)>& tell);

}  // namespace dtool::host
