// SPDX-License-Identifier: MIT
// What two recorded runs have in common and where they differ: code, settings, hosts, metrics.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/record/record.h"

namespace dtool::cli {

/// Something that the two runs have differently; empty: one of them lacks it.
struct Difference {
  std::string name;
  std::string before;
  std::string now;

  bool operator==(const Difference&) const = default;
};

struct Comparison {
  /// Commit, branch, and each file: `there` and `changed`, `there` and `gone`, or empty and
  /// `added`.
  std::vector<Difference> code;
  std::vector<Difference> settings;  ///< flattened: `train.epochs`
  std::vector<Difference> hosts;     ///< `machine 0 memory`
  std::vector<Difference> metrics;   ///< equal ones too
  std::string code_note;             ///< a note on what could not be compared; or empty
};

/// The leaves of a TOML text by their dotted keys, each value as TOML writes it. Throws
/// std::invalid_argument if the text is no TOML.
std::map<std::string, std::string> flatten_toml(std::string_view text);

/// A metric as it was meant: a number that came from a float has that one's digits, `0.1` and not
/// `0.10000000149011612`.
std::string metric_text(const nlohmann::json& value);

/// The files that a diff of git's names, by what it says about each.
std::map<std::string, std::string> files_of_diff(std::string_view diff);

/// `before_listing` and `now_listing`: texts of the code's listings, where they were kept.
Comparison compare_runs(const RunRecord& before, const RunRecord& now,
                        const std::optional<std::string>& before_listing,
                        const std::optional<std::string>& now_listing);

}  // namespace dtool::cli
