// SPDX-License-Identifier: MIT
// Starts a job on this host: writes its state folder, and starts a session that survives the end of
// a login.
#pragma once

#include "ssh/wire/run.h"

namespace dtool::host {

/// Does not throw for a failure of the host: the reply has the reason.
StartReply start_job(const StartRequest& request);

}  // namespace dtool::host
