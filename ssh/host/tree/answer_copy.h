// SPDX-License-Identifier: MIT
// How much of what `dtool copy` sends has this host, and is there room for the rest? Asked before
// anything is sent, and once more at the end, as the proof that all is there.
#pragma once

#include "ssh/host/frame_input.h"
#include "ssh/wire/copy.h"

namespace dtool::host {

/// Throws Refused (ssh/host/tree/tree_folder.h) if nothing can be copied to the folder. The listing
/// is read from `input`.
CopyReply answer_copy(const CopyRequest& request, FrameInput& input);

}  // namespace dtool::host
