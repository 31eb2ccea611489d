// The allowed values of flags, each as a check for CLI11: it returns the complaint, or nothing.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace dtool::cli {

/// The most processes of one machine: --nproc_per_node and run.nproc_per_node of a configuration
/// file.
inline constexpr int kMostProcesses = 4096;

/// The longest time in seconds for --lost_after and run.lost_after.
inline constexpr int kLongestSilence = 24 * 3600;

/// Seconds, with or without decimals, from a thousandth to a year.
std::string must_be_seconds(const std::string& text);
/// The value of such a flag.
std::chrono::milliseconds from_seconds(double seconds);
/// A whole number from 1.
std::string must_be_count(const std::string& text);
/// A number in that range, with or without decimals.
CLI::Validator must_be_from(double least, double most);
/// One of these words. Completion reads them from the validator's description, `{auto,always}`.
CLI::Validator must_be_one_of(const std::vector<std::string>& words);
/// An unset shell variable gives an empty word, which would look like a flag that was left out.
std::string must_not_be_empty(const std::string& text);

/// A whole number, in decimal.
struct WholeNumbers {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::int32_t>::max();
};
CLI::Validator must_be_within(WholeNumbers numbers);

/// Adds a flag whose values are whole numbers. Use it for every such flag.
template <typename Value>
CLI::Option* add_whole_number(CLI::App& app, const std::string& names, Value& value,
                              const std::string& about, WholeNumbers numbers = {}) {
  return app.add_option(names, value, about)->transform(must_be_within(numbers));
}

}  // namespace dtool::cli
