// SPDX-License-Identifier: MIT
// The table of `dtool status`: a row per machine, cut and folded to the available room.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/watch/machine_status.h"
#include "killfiles/killfile.h"

namespace dtool::cli {

/// The room for a table in columns and rows; 0: unlimited.
struct Room {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

/// More rows than these cannot be read without paging; status folds them.
inline constexpr std::size_t kReadableRows = 64;

/// A row of titles, then a row per machine. Columns without values are left out. If the room is
/// narrow, the least important columns go, and the last line of a log is cut. If it is low,
/// machines of the same state share a row unless they are few, and rows that still do not fit are
/// counted in the last one.
std::vector<std::string> table(const Console& console, const std::vector<MachineStatus>& machines,
                               Room room);

// The lines about the whole run that `dtool status` shows above its table.

/// All states that occur: `running on 3 of 4 machines, 1 unreachable`, or, if no machine runs,
/// `failed: 1 of 2 machines exited 3, 1 stopped`.
std::string summary(const std::vector<MachineStatus>& machines);

/// The lines above the table: the run and its summary, the cause with the failed machine's last
/// lines, the supervision, the progress. Each line is cut to that many columns; 0: not cut.
std::vector<std::string> headlines(const Console& console, const killfiles::Killfile& killfile,
                                   const std::vector<MachineStatus>& machines, std::size_t columns);

}  // namespace dtool::cli
