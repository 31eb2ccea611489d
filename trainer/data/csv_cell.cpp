#include "trainer/data/csv_cell.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string result(text.substr(0, kMost));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < ' ') c = '?';
  }
  return text.size() > kMost ? result + "..." : result;
}

Reading take_number(std::string_view& text, double& value) {
  std::string_view digits = text;
  const bool plus = digits.size() > 1 && digits[0] == '+' && digits[1] != '-';
  if (plus) digits.remove_prefix(1);  // which from_chars does not know
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::invalid_argument) return Reading::none;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (error == std::errc::result_out_of_range) return Reading::out_of_range;
  return std::isfinite(value) ? Reading::number : Reading::infinite;
}

Reading read_cell(std::string_view cell, double& value) {
  if (cell.empty()) return Reading::empty;
  const Reading reading = take_number(cell, value);
  return cell.empty() ? reading : Reading::none;
}

void refuse_cell(const std::string& place, std::string_view cell, Reading reading) {
  const std::string text = shown(cell);
  switch (reading) {
    case Reading::empty:
      throw UsageError(fmt::format("{} is empty", place));
    case Reading::infinite:
      throw UsageError(fmt::format("{}: '{}' is no finite number", place, text));
    case Reading::out_of_range:
      throw UsageError(fmt::format("{}: '{}' is beyond the range of numbers", place, text));
    case Reading::number:
    case Reading::none:
      break;
  }
  const bool decimal_comma = cell.find(',') != std::string_view::npos &&
                             cell.find_first_not_of("+-0123456789,eE") == std::string_view::npos;
  throw UsageError(fmt::format("{}: '{}' is not a number", place, text),
                   decimal_comma ? "decimals are written with a point" : "");
}

}  // namespace dtool::trainer
