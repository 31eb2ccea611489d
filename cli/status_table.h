// What `dtool status` shows: a headline, the cause where the run failed, its progress, and a row
// for each machine, cut and folded to the room there is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "cli/machine_status.h"

namespace dtool::cli {

/// The room for a table in columns and rows; 0: as much as it takes.
struct Room {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

/// `running on 3 of 4 machines, 1 unreachable`, with every state that there is.
std::string summary(const std::vector<MachineStatus>& machines);

/// Lines above the table: the run and its summary, the cause with the last lines of the machine
/// that failed, the supervision, the progress.
std::vector<std::string> headlines(const Console& console, const killfiles::Killfile& killfile,
                                   const std::vector<MachineStatus>& machines, Room room);

/// So many rows are read without paging; status folds beyond.
inline constexpr std::size_t kReadableRows = 64;

/// A row for each machine behind a row of titles. Columns without a value are left out; where the
/// room is narrow the least important ones go, and the last line is cut; where it is low, machines
/// of the same state share a row, unless they are few, and what does not fit even so is counted in
/// the last one.
std::vector<std::string> table(const Console& console, const std::vector<MachineStatus>& machines,
                               Room room);

/// `59s`, `3m 20s`, `2h 05m`, `3d 04h`.
std::string duration_text(std::int64_t seconds);

/// The first `columns` characters of UTF-8 text, the last of them an ellipsis where some are left
/// out.
std::string cut(std::string_view text, std::size_t columns);

}  // namespace dtool::cli
