// SPDX-License-Identifier: MIT
// How machines of recorded runs are doing on this host. Reads only the ends of files, whatever
// their size, and writes nothing.
#pragma once

#include "ssh/wire/run.h"

namespace dtool::host {

/// Throws std::runtime_error if the host's processes cannot be read.
StatusReply tell_status(const StatusRequest& request);

}  // namespace dtool::host
