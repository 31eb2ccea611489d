// One cell of a CSV file as a number, or why it is none. csv.cpp cuts files into cells.
#pragma once

#include <string>
#include <string_view>

namespace dtool::trainer {

enum class Reading { number, empty, none, infinite, out_of_range };

/// Reads a number from the beginning of `text` and takes it off, by std::from_chars, which no
/// locale changes.
Reading take_number(std::string_view& text, double& value);

/// Reads a whole cell without its blanks and quotes.
Reading read_cell(std::string_view cell, double& value);

/// As much of a cell as a message needs.
std::string shown(std::string_view text);

/// Throws UsageError that says why the cell at `place` is no number.
[[noreturn]] void refuse_cell(const std::string& place, std::string_view cell, Reading reading);

}  // namespace dtool::trainer
