// SPDX-License-Identifier: MIT
// Reads tables of numbers in CSV files, plain or gzip, strictly by RFC 4180
// (https://www.rfc-editor.org/rfc/rfc4180).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::trainer {

enum class Header { absent, present };

struct CsvFormat {
  char separator = ',';  ///< any character except a quote and those that end a line
  Header header = Header::present;
};

struct CsvTable {
  std::string file;                  ///< for messages
  std::vector<std::string> columns;  ///< the header's names, or `1`, `2`, ... without one
  std::vector<double> values;        ///< [rows, columns], all finite
  std::vector<std::int64_t> lines;   ///< the line on which each row begins, from 1

  std::int64_t rows() const { return static_cast<std::int64_t>(lines.size()); }
  double at(std::int64_t row, std::size_t column) const {
    return values[static_cast<std::size_t>(row) * columns.size() + column];
  }
  /// `data.csv:7: column 'price'`, for messages.
  std::string place(std::int64_t row, std::size_t column) const;
};

/// Beyond the RFC, a line may end with LF alone, and a UTF-8 byte-order mark may come first. Reads
/// piece by piece: the whole text is never in memory.
/// Throws UsageError naming file, line and column for a cell that is empty, not a number, infinite
/// or NaN, and for a misplaced quote; naming file and line for a row with fewer or more cells than
/// the first, an unclosed quote, and a header of only numbers; and for a table without rows.
CsvTable read_csv(const std::filesystem::path& file, const CsvFormat& format);

/// The same for text; `name` stands for the file in messages.
CsvTable parse_csv(const std::string& name, std::string_view text, const CsvFormat& format);

}  // namespace dtool::trainer
