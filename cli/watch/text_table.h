// SPDX-License-Identifier: MIT
// Rows of cells as lines of text that fit the terminal: where the room is narrow, columns go and
// cells are cut.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "cli/console.h"

namespace dtool::cli {

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
