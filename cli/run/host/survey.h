// What no run needs to know of a host, and its user does: versions, memory, disks, GPUs.
#pragma once

#include <string>

#include "ssh/host/protocol.h"

namespace dtool::host {

/// `code`: a folder on the disk where the code will be.
Survey survey_host(const std::string& code);

/// The user whose process this is, by the log-in's own words; the number where those are missing.
std::string user_name();

}  // namespace dtool::host
