// SPDX-License-Identifier: MIT
// The variables of --export and --env_file for a run's processes. Their values may be secrets: they
// go to the hosts in a private file, and are neither recorded nor shown.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtool::cli {

using Variable = std::pair<std::string, std::string>;

/// `NAME` or `NAME=value` of --export; a missing value is taken from this process. Throws
/// UsageError on an impossible name, and if this process has no such variable.
Variable parse_export(const std::string& text);

/// The variable that hides AMD's other GPUs.
inline constexpr std::string_view kAmdsGpus = "HIP_VISIBLE_DEVICES";

/// `0,2` or UUIDs of --gpus as the variable that hides the other GPUs, CUDA_VISIBLE_DEVICES. Throws
/// UsageError on what is no list, mixes numbers with UUIDs, or names a GPU twice.
Variable parse_gpus(const std::string& list);

/// The last value of a variable; nothing if it has none.
std::optional<std::string> find_variable(const std::vector<Variable>& variables,
                                         std::string_view name);

/// Reads lines `NAME=VALUE`; empty lines and lines that begin with # are skipped. Blanks around a
/// value are dropped, and so are quotes (`'` or `"`) around the whole value; nothing else has a
/// special meaning. Throws UsageError with `file:line:`, which shows no value, else
/// std::system_error.
std::vector<Variable> read_env_file(const std::string& file);
/// The same for the text of such a file.
std::vector<Variable> parse_env_file(std::string_view text, const std::string& name);

/// Shown in place of a value.
inline constexpr std::string_view kHiddenValue = "…";

/// The words of a command line with `…` for each value of --export.
std::vector<std::string> without_values(std::vector<std::string> command_line);
/// The same for variables.
std::vector<Variable> without_values(std::vector<Variable> variables);

}  // namespace dtool::cli
