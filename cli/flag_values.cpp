// SPDX-License-Identifier: MIT
#include "cli/flag_values.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>

#include "ssh/machine/home_folder.h"
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

Check must_be_from(double least, double most) {
  return [least, most](const std::string& text) {
    const auto number = ssh::read_number<double>(text);
    // Written so that NaN is refused too.
    if (number && *number >= least && *number <= most) return std::string();
    return fmt::format("'{}' is not a number from {} to {}", text, least, most);
  };
}

std::string must_not_be_empty(const std::string& text) {
  return text.empty() ? "the value is empty" : "";
}

std::string note_on_home(const std::string& flag, const std::string& path) {
  const std::filesystem::path below =
      std::filesystem::path(path).lexically_relative(ssh::home_folder());
  if (below.empty() || *below.begin() == "..") return "";
  return fmt::format(
      "{0}{1} is a path of this machine's home folder; {0}'~/{2}' (in quotes) is below the home "
      "folder of each host",
      flag, path, below == "." ? "" : below.native());
}

}  // namespace dtool::cli
