// How machines of recorded runs are doing on this host. Reads the ends of files alone, however
// large they are, and writes nothing.
#pragma once

#include "ssh/host/protocol.h"

namespace dtool::host {

/// Throws std::runtime_error if the host's processes cannot be looked at.
StatusReply tell_status(const StatusRequest& request);

}  // namespace dtool::host
