// Whether this host can run a machine's part of a run, and what a user wants to know of it.
#pragma once

#include "ssh/host/protocol.h"

namespace dtool::host {

/// Makes the run's folder, where there is to be one. Afterwards this process has the variables of
/// the readied environment.
CheckReply check_host(const CheckRequest& request);

}  // namespace dtool::host
