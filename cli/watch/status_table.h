// The table that `dtool status` shows: a row for each machine, cut and folded to the room there is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/watch/machine_status.h"

namespace dtool::cli {

/// The room for a table in columns and rows; 0: as much as it takes.
struct Room {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

/// So many rows are read without paging; status folds beyond.
inline constexpr std::size_t kReadableRows = 64;

/// A row for each machine behind a row of titles. Columns without a value are left out; where the
/// room is narrow the least important ones go, and the last line is cut; where it is low, machines
/// of the same state share a row, unless they are few, and what does not fit even so is counted in
/// the last one.
std::vector<std::string> table(const Console& console, const std::vector<MachineStatus>& machines,
                               Room room);

}  // namespace dtool::cli
