// SPDX-License-Identifier: MIT
// The table of `dtool status`: a row per machine, cut and folded to the available room.
#pragma once

#include <cstddef>
#include <limits>
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

// Rows of cells as lines of text that fit the terminal: where the room is narrow, columns go and
// cells are cut.

struct TableColumn {
  const char* title;
  bool is_number = false;  ///< stands on the right
  bool stays = false;      ///< also where the line gets too long with it
  /// The column's greatest width where the room is limited.
  std::size_t widest = std::numeric_limits<std::size_t>::max();
};

struct TableForm {
  std::vector<TableColumn> columns;  ///< the last one takes the rest of the line
  std::size_t styled = 0;            ///< the column that has a row's style
  /// The columns that go where the room is narrow, the first first.
  std::vector<std::size_t> dispensable;
  std::size_t least_last = 0;  ///< they go until the last column has as much room as this
};

struct TableRow {
  std::vector<std::string> cells;  ///< one for each column; may be empty
  Style style = Style::plain;
};

/// A line of titles, then one for each row, of at most `room` characters (0: no limit) unless what
/// stays takes more. Columns without a cell are left out, and where all that may go has gone, those
/// that do not fit.
std::vector<std::string> table_lines(const Console& console, const TableForm& form,
                                     const std::vector<TableRow>& rows, std::size_t room);

}  // namespace dtool::cli
