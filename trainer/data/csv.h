// Reads tables of numbers in CSV files, plain or gzip: RFC 4180, with what spreadsheets and
// programs make of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::trainer {

enum class Separator { automatic, comma, semicolon, tab };

enum class Header { automatic, present, absent };

struct CsvFormat {
  Separator separator = Separator::automatic;
  Header header = Header::automatic;
};

struct CsvTable {
  std::string file;                  ///< for messages
  std::vector<std::string> columns;  ///< the header's names, or `1`, `2`, ... without one
  std::vector<double> values;        ///< [rows, columns], all finite
  std::vector<std::int64_t> lines;   ///< the line that each row begins on, from 1

  std::int64_t rows() const { return static_cast<std::int64_t>(lines.size()); }
  double at(std::int64_t row, std::size_t column) const {
    return values[static_cast<std::size_t>(row) * columns.size() + column];
  }
  /// `data.csv:7: column 'price'`, for messages.
  std::string place(std::int64_t row, std::size_t column) const;
};

/// Left to itself, the separator is a tab, else a semicolon, else a comma, whichever the first row
/// has outside quotes; the first row is a header if no cell of it is a number. Cells may be quoted
/// and padded with blanks; empty lines, a byte-order mark and either line end are passed over.
/// Throws UsageError naming file, line and column for a cell that is empty, no number, infinite or
/// not a number (NaN), for a row with fewer or more cells than the first, for an open quote, for a
/// first row that might be either header or numbers, and for a table without rows.
CsvTable read_csv(const std::filesystem::path& file, const CsvFormat& format);

/// The same of text; `name` stands for the file in messages.
CsvTable parse_csv(const std::string& name, std::string_view text, const CsvFormat& format);

}  // namespace dtool::trainer
