// SPDX-License-Identifier: MIT
// The main loop of a session that supervises: the script's end, reports and decisions, and the
// guard.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/host/session/supervision.h"

namespace dtool::host {

/// How many processes the kernel has ended since boot because it ran out of memory, from
/// /proc/vmstat; nothing where it does not count them.
std::optional<std::uint64_t> out_of_memory_kills(std::string_view counters);

/// `viewer`: a child that is spared when the run's processes are ended; -1: none. Returns the
/// session's exit code. Throws std::runtime_error if the session cannot continue.
int run_supervised(const Supervision& settings, const std::string& log, pid_t viewer);

}  // namespace dtool::host
