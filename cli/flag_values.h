// What the values of flags must be, each as a check for CLI11: the complaint, or nothing.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>

namespace dtool::cli {

/// Of one machine: --nproc_per_node and run.nproc_per_node of a configuration file.
inline constexpr int kMostProcesses = 4096;

/// Seconds: --lost_after and run.lost_after.
inline constexpr int kLongestSilence = 24 * 3600;

/// Seconds, whole or not, from a thousandth to a year.
std::string must_be_seconds(const std::string& text);
/// What such a flag says.
std::chrono::milliseconds from_seconds(double seconds);
/// A whole number from 1.
std::string must_be_count(const std::string& text);
/// A whole number from 0.
std::string must_be_whole_number(const std::string& text);
/// A seed: a whole number from 0, of 64 bits.
std::string must_be_seed(const std::string& text);
/// A variable that is not set gives an empty word, which would pass for a flag that is left out.
std::string must_not_be_empty(const std::string& text);

/// Digits alone without the zeros before them, for which CLI11 would read them as octal; any other
/// text as it is.
std::string in_decimal(const std::string& text);

/// Adds a flag whose values are whole numbers, written in decimal: every such flag is added so.
template <typename Number>
CLI::Option* add_whole_number(CLI::App& app, const std::string& names, Number& number,
                              const std::string& about) {
  return app.add_option(names, number, about)->transform(in_decimal);
}

}  // namespace dtool::cli
