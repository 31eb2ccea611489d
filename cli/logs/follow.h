// Watching jobs until they end: their logs as they grow, or each one's last line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/console.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Waits for the jobs of the machines `which` and returns their exit codes. On a terminal one line
/// a machine shows its last line; the last line of a machine that has ended well stays. What failed
/// carries its last lines as its error. Ctrl-C leaves the jobs running.
std::vector<ssh::HostResult> follow_last_lines(Console& console, ssh::Remote& remote,
                                               const killfiles::Killfile& killfile,
                                               const std::vector<std::size_t>& which);

/// How a run ended.
struct FollowedRun {
  std::vector<ssh::HostResult> results;  ///< the jobs' exit codes, one a machine
  std::string cause;                     ///< why the run failed, or empty
};

/// Prints the logs of all machines as they grow, each line behind its machine; the cause,
/// with which every machine's log ends, only once. Ctrl-C leaves the jobs running.
FollowedRun follow_logs(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile);

}  // namespace dtool::cli
