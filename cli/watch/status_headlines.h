// What `dtool status` shows above its table: of the run as a whole.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/watch/machine_status.h"
#include "killfiles/killfile.h"

namespace dtool::cli {

/// `running on 3 of 4 machines, 1 unreachable`, with every state that there is.
std::string summary(const std::vector<MachineStatus>& machines);

/// Lines above the table: the run and its summary, the cause with the last lines of the machine
/// that failed, the supervision, the progress; each cut to so many columns, 0: to none.
std::vector<std::string> headlines(const Console& console, const killfiles::Killfile& killfile,
                                   const std::vector<MachineStatus>& machines, std::size_t columns);

}  // namespace dtool::cli
