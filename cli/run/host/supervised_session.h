// SPDX-License-Identifier: MIT
// The main loop of a session that supervises: the script's end, reports and decisions, and the
// guard.
#pragma once

#include <sys/types.h>

#include <string>

#include "cli/run/host/supervision.h"

namespace dtool::host {

/// `viewer`: a child that is spared when the run's processes are ended; -1: none. Returns the
/// session's exit code. Throws std::runtime_error if the session cannot continue.
int run_supervised(const Supervision& settings, const std::string& log, pid_t viewer);

}  // namespace dtool::host
