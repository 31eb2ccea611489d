// What the values of flags must be, each as a check for CLI11: the complaint, or nothing.
#pragma once

#include <string>

namespace dtool::cli {

/// Seconds, whole or not, from a thousandth to a year.
std::string must_be_seconds(const std::string& text);
/// A whole number from 1.
std::string must_be_count(const std::string& text);
/// A whole number from 0.
std::string must_be_whole_number(const std::string& text);
/// A variable that is not set gives an empty word, which would pass for a flag that is left out.
std::string must_not_be_empty(const std::string& text);

}  // namespace dtool::cli
