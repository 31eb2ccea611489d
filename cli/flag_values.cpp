#include "cli/flag_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ssh/number.h"

namespace dtool::cli {
namespace {

constexpr auto kLargest = std::numeric_limits<std::uint32_t>::max();

}  // namespace

std::string must_be_seconds(const std::string& text) {
  constexpr double kShortest = 0.001;
  constexpr double kLongest = 365.0 * 24 * 3600;
  const auto seconds = ssh::read_number<double>(text);
  // Written so that NaN is refused too.
  if (seconds && *seconds >= kShortest && *seconds <= kLongest) return "";
  return fmt::format("'{}' is not a number of seconds from {} to {:.0f}", text, kShortest,
                     kLongest);
}

std::chrono::milliseconds from_seconds(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

std::string must_be_count(const std::string& text) {
  const auto count = ssh::read_number<std::uint32_t>(text);
  if (count && *count >= 1) return "";
  return fmt::format("'{}' is not a whole number from 1 to {}", text, kLargest);
}

CLI::Validator must_be_from(double least, double most) {
  const auto check = [least, most](const std::string& text) {
    const auto number = ssh::read_number<double>(text);
    // Written so that NaN is refused too.
    if (number && *number >= least && *number <= most) return std::string();
    return fmt::format("'{}' is not a number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

CLI::Validator must_be_one_of(const std::vector<std::string>& words) {
  const auto check = [words](const std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    return fmt::format("'{}' is not one of {}", text, fmt::join(words, ", "));
  };
  return CLI::Validator(check, fmt::format("{{{}}}", fmt::join(words, ",")));
}

CLI::Validator must_be_within(WholeNumbers numbers) {
  const auto check = [numbers](std::string& text) {
    const auto number = ssh::read_number<std::uint64_t>(text);
    if (!number || *number < numbers.least || *number > numbers.most)
      return fmt::format("'{}' is not a whole number from {} to {}", text, numbers.least,
                         numbers.most);
    text = std::to_string(*number);  // zeros before it would make it octal for CLI11
    return std::string();
  };
  return CLI::Validator(check, "", "");
}

std::string must_not_be_empty(const std::string& text) {
  return text.empty() ? "the value is empty" : "";
}

}  // namespace dtool::cli
