// SPDX-License-Identifier: MIT
// The allowed values of flags, each as a check of cli/options.h.
#pragma once

#include <chrono>
#include <string>

#include "cli/options.h"

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
Check must_be_from(double least, double most);
/// An unset shell variable gives an empty word, which would look like a flag that was left out.
std::string must_not_be_empty(const std::string& text);
/// What is worth a note on a path of hosts: the shell here has made `~` this machine's home folder.
/// `flag` stands before the path. Empty: nothing.
std::string note_on_home(const std::string& flag, const std::string& path);

}  // namespace dtool::cli
