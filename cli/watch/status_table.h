// SPDX-License-Identifier: MIT
// The table of `dtool status`: a row per machine, cut and folded to the available room.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/watch/machine_status.h"

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

}  // namespace dtool::cli
