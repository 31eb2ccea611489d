// SPDX-License-Identifier: MIT
// What dtool keeps on this host for later runs, with sizes and ages; `dtool clean` deletes of it
// what nothing uses.
#pragma once

#include "ssh/wire/tree.h"

namespace dtool::host {

/// All that is kept, in the order of its kinds, also what was deleted now.
KeptReply tell_kept(const KeptRequest& request);

}  // namespace dtool::host
