// SPDX-License-Identifier: MIT
// Facts about a host that no run needs but its user wants to know: versions, memory, disks.
#pragma once

#include <string>

#include "cli/run/host/gpus.h"
#include "ssh/host/messages/check.h"

namespace dtool::host {

/// Cores, memory and GPUs; takes no time.
Hardware find_hardware(const HostGpus& gpus);

/// `code`: a folder on the disk of the code.
Survey survey_host(const std::string& code);

/// This process's user, by the login's name; the number if the name is missing.
std::string user_name();

}  // namespace dtool::host
