// SPDX-License-Identifier: MIT
// Follows jobs until they end: shows their logs as they grow, or each one's last line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/console.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Waits for the jobs of the machines `which` and returns their exit codes. On a terminal each
/// machine has a row with its last line; the row of a machine that ended well stays. A failed job
/// has its last lines as its error. Ctrl-C leaves the jobs running.
std::vector<ssh::HostResult> follow_last_lines(Console& console, ssh::Remote& remote,
                                               const killfiles::Killfile& killfile,
                                               const std::vector<std::size_t>& which);

/// How a run ended.
struct FollowedRun {
  std::vector<ssh::HostResult> results;  ///< the jobs' exit codes, one a machine
  std::string cause;                     ///< why the run failed, or empty
};

/// Prints the logs of all machines as they grow; each line begins with its machine. The cause,
/// which ends every machine's log, is printed only once. Ctrl-C leaves the jobs running.
FollowedRun follow_logs(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile);

}  // namespace dtool::cli
