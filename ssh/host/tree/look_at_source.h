// SPDX-License-Identifier: MIT
// Checks whether the source of a `dtool fetch` exists.
#pragma once

#include "ssh/wire/tree.h"

namespace dtool::host {

/// Throws Refused (tree_folder.h).
LookReply look_at_source(const LookRequest& request);

}  // namespace dtool::host
