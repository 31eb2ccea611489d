// The variables that a run's processes are given by --export and --env_file. Their values may be
// secrets: they go to the hosts in a file of the user's own, and are neither recorded nor shown.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtool::cli {

using Variable = std::pair<std::string, std::string>;

/// `NAME` or `NAME=value` as --export takes it; a value left out is this process's. Throws
/// UsageError on a name that no variable can have, and where this process has no such variable.
Variable parse_export(const std::string& text);

/// Lines `NAME=VALUE`; empty ones and those that begin with # are left out. Blanks around a value
/// do not count, and quotes around all of it, `'` or `"`, are left away; nothing else of it means
/// anything. Throws UsageError with `file:line:`, which names no value, else std::system_error.
std::vector<Variable> read_env_file(const std::string& file);
/// Of such a file's text.
std::vector<Variable> parse_env_file(std::string_view text, const std::string& name);

/// What stands in the place of a value.
inline constexpr std::string_view kHiddenValue = "…";

/// The words of a command line with `…` for each value of --export.
std::vector<std::string> without_values(std::vector<std::string> command_line);
/// The variables likewise.
std::vector<Variable> without_values(std::vector<Variable> variables);

}  // namespace dtool::cli
