// SPDX-License-Identifier: MIT
// Facts about a host that no run needs but its user wants to know: versions, memory, disks, GPUs.
#pragma once

#include <string>

#include "ssh/host/protocol.h"

namespace dtool::host {

/// `code`: a folder on the disk of the code.
Survey survey_host(const std::string& code);

/// This process's user, by the login's name; the number if the name is missing.
std::string user_name();

}  // namespace dtool::host
