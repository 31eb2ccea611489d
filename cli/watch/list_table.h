// SPDX-License-Identifier: MIT
// The table of `dtool list`: a row for each recorded run, fitted to the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/watch/machine_status.h"
#include "killfiles/killfile.h"

namespace dtool::cli {

/// The hosts of a run, `gpu[01-08]`.
std::string folded_hosts(const killfiles::Killfile& killfile);

/// The titles, then a row for each run. `states`: one list for each run, of its machines (empty: it
/// could not be asked); none at all without --state. `columns`: of the terminal; 0: no limit. Where
/// they are too few, first the number of machines goes, then the time, which the run's id has, too,
/// and then the hosts are cut; the id and the state stay whole.
std::vector<std::string> list_table(const Console& console,
                                    const std::vector<killfiles::Killfile>& runs,
                                    const std::vector<std::vector<MachineStatus>>& states,
                                    std::size_t columns);

}  // namespace dtool::cli
