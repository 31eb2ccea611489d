// SPDX-License-Identifier: MIT
// Shell text that assigns variables, for scripts that are sent to hosts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtool::cli {

/// Whether a shell or environment variable can have this name.
bool is_variable_name(std::string_view name);

/// `name=value` and a line end; the value arrives unchanged.
std::string assign(std::string_view name, std::string_view value);

/// The same for a path on the host, where `~/` is the home folder. An empty path gives an empty
/// word.
std::string assign_path(std::string_view name, std::string_view path);

/// `name=(values)`; a long series of equal values becomes a loop.
std::string assign_array(std::string_view name, const std::vector<std::string>& values);

}  // namespace dtool::cli
