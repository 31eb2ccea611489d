// Readies a host for a set-up script.
#pragma once

#include "ssh/host/protocol.h"

namespace dtool::host {

/// Throws std::runtime_error with a sentence where the key cannot be added or the folder not made.
ReadyReply ready_host(const ReadyRequest& request);

}  // namespace dtool::host
