// SPDX-License-Identifier: MIT
// Reads tables of numbers in CSV files, plain or gzip, strictly by RFC 4180
// (https://www.rfc-editor.org/rfc/rfc4180).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace dtool::trainer {

enum class Header { absent, present };

struct CsvFormat {
  char separator = ',';  ///< any character except a quote and those that end a line
  Header header = Header::present;
};

/// A row while it is read.
struct CsvRow {
  std::int64_t number;            ///< the row's number, from 0
  std::int64_t line;              ///< the line on which the row begins, from 1
  const std::vector<double>& at;  ///< its numbers by column, all finite
};

/// Fills a buffer with the text's next characters and returns how many; fewer than its size at the
/// end only.
using CsvText = std::function<std::size_t(char* into, std::size_t size)>;

/// A table of numbers. Its text is read anew each time and its numbers are never all in memory,
/// since a table may be as large as the memory.
class CsvTable {
 public:
  /// Reads the text once to count the rows: `open` begins it again. `file` stands for it in
  /// messages. Throws UsageError naming file and line for a row with fewer or more cells than the
  /// first, a misplaced or unclosed quote, and a header of only numbers; and for a table without
  /// rows.
  CsvTable(std::string file, std::function<CsvText()> open, const CsvFormat& format);

  const std::string& file() const { return file_; }
  /// The header's names, or `1`, `2`, ... without one.
  const std::vector<std::string>& columns() const { return columns_; }
  std::int64_t rows() const { return rows_; }

  /// Reads the rows, in order. Throws UsageError naming file, line and column for a cell that is
  /// empty, not a number, infinite or NaN; and if the text has other rows than it had.
  void read(const std::function<void(const CsvRow&)>& take) const;

  /// `data.csv:7: column 'price'`, for messages.
  std::string place(std::int64_t line, std::size_t column) const;

 private:
  std::string file_;
  std::function<CsvText()> open_;
  CsvFormat format_;
  std::vector<std::string> columns_;
  std::int64_t rows_ = 0;
};

/// The table in a file, which stays open: another file that is renamed over it changes nothing, and
/// writing to it is refused like other rows. Beyond the RFC, a line may end with LF alone, and a
/// UTF-8 byte-order mark may come first. Throws as the constructor does.
CsvTable read_csv(const std::filesystem::path& file, const CsvFormat& format);

}  // namespace dtool::trainer
