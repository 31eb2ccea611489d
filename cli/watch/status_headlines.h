// SPDX-License-Identifier: MIT
// The lines about the whole run that `dtool status` shows above its table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/watch/machine_status.h"
#include "killfiles/killfile.h"

namespace dtool::cli {

/// All states that occur: `running on 3 of 4 machines, 1 unreachable`, or, if no machine runs,
/// `failed: 1 of 2 machines exited 3, 1 stopped`.
std::string summary(const std::vector<MachineStatus>& machines);

/// The lines above the table: the run and its summary, the cause with the failed machine's last
/// lines, the supervision, the progress. Each line is cut to that many columns; 0: not cut.
std::vector<std::string> headlines(const Console& console, const killfiles::Killfile& killfile,
                                   const std::vector<MachineStatus>& machines, std::size_t columns);

}  // namespace dtool::cli
