// SPDX-License-Identifier: MIT
// Sends a job's log to dtool: whole, its last lines, or as it grows.
#pragma once

#include "ssh/wire/log.h"

namespace dtool::host {

/// Writes the frames of the reply to `output`. Returns the job's exit code if the job was followed,
/// else 0. Throws std::runtime_error if there is no log, or if the reader is gone.
int send_log(const LogRequest& request, int output);

}  // namespace dtool::host
