// SPDX-License-Identifier: MIT
// Checks whether this host can run a machine's part of a run, and surveys it for the user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ssh/wire/check.h"

namespace dtool::host {

/// Makes the run's folder if the request names one. Afterwards this process has the variables of
/// the prepared environment.
CheckReply check_host(const CheckRequest& request);

/// How many more files a disk can hold, if these are too few for a run; `left`: nothing if it has
/// no such limit.
std::optional<std::uint32_t> too_few_inodes(std::optional<std::uint64_t> left);

/// Whether systemd ends what a user leaves running at log-out. `settings`: the folder of
/// logind.conf and logind.conf.d; `linger_mark`: a file that is there if this user's may go on.
bool ends_at_logout(const std::string& settings, const std::string& linger_mark);

}  // namespace dtool::host
