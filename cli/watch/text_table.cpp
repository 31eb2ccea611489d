// SPDX-License-Identifier: MIT
#include "cli/watch/text_table.h"

#include <algorithm>

#include "cli/console.h"

namespace dtool::cli {
namespace {

constexpr std::size_t kBetween = 2;  ///< blanks between columns

/// Of all columns but the last. 0: the column is left out.
using Widths = std::vector<std::size_t>;

std::size_t total(const Widths& widths) {
  std::size_t sum = 0;
  for (const std::size_t each : widths) sum += each == 0 ? 0 : each + kBetween;
  return sum;
}

Widths widths_of(const TableForm& form, const std::vector<TableRow>& rows, std::size_t room) {
  Widths widths(form.columns.size() - 1);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    for (const TableRow& row : rows) widths[i] = std::max(widths[i], length(row.cells[i]));
    if (widths[i] > 0) widths[i] = std::max(widths[i], length(form.columns[i].title));
    if (room > 0) widths[i] = std::min(widths[i], form.columns[i].widest);
  }
  for (const std::size_t each : form.dispensable) {
    if (room == 0 || total(widths) + form.least_last <= room) break;
    widths[each] = 0;
  }
  return widths;
}

std::string line_of(const Console& console, const TableForm& form, const TableRow& row,
                    const Widths& widths, std::size_t room) {
  std::string line;
  std::size_t used = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const bool fits = room == 0 || used + widths[i] + kBetween <= room;
    if (widths[i] == 0 || !(fits || form.columns[i].stays)) continue;
    const std::string text = cut(row.cells[i], widths[i]);
    const std::string blanks(widths[i] - length(text), ' ');
    const std::string cell = form.columns[i].is_number ? blanks + text : text + blanks;
    line += (i == form.styled ? console.styled(row.style, cell) : cell);
    line.append(kBetween, ' ');
    used += widths[i] + kBetween;
  }
  if (room == 0) return line + row.cells.back();
  return room > used ? line + cut(row.cells.back(), room - used) : line;
}

}  // namespace

std::vector<std::string> table_lines(const Console& console, const TableForm& form,
                                     const std::vector<TableRow>& rows, std::size_t room) {
  const Widths widths = widths_of(form, rows, room);
  TableRow titles;
  for (const TableColumn& column : form.columns) titles.cells.emplace_back(column.title);
  std::vector<std::string> lines = {
      console.styled(Style::bold, line_of(Console(), form, titles, widths, room))};
  for (const TableRow& row : rows) lines.push_back(line_of(console, form, row, widths, room));
  return lines;
}

}  // namespace dtool::cli
