// Starts a job on this host: writes its state folder, and has a session begin that no log-in ends.
#pragma once

#include "ssh/host/protocol.h"

namespace dtool::host {

/// Never throws for what can go wrong on a host: the reply says it.
StartReply start_job(const StartRequest& request);

}  // namespace dtool::host
