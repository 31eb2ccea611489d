// SPDX-License-Identifier: MIT
// Checks whether this host can run a machine's part of a run, and surveys it for the user.
#pragma once

#include "ssh/host/messages/check.h"

namespace dtool::host {

/// Makes the run's folder if the request names one. Afterwards this process has the variables of
/// the prepared environment.
CheckReply check_host(const CheckRequest& request);

}  // namespace dtool::host
