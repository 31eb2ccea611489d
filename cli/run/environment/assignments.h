// Shell text that gives variables their values, for scripts that travel to hosts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtool::cli {

/// Whether a shell's or an environment's variable can be called so.
bool is_variable_name(std::string_view name);

/// `name=value` and a line end; the value arrives unchanged.
std::string assign(std::string_view name, std::string_view value);

/// The same for a path on the host, where `~/` is the home folder. Empty: the empty word.
std::string assign_path(std::string_view name, std::string_view path);

/// `name=(values)`; many equal ones in a row as a loop.
std::string assign_array(std::string_view name, const std::vector<std::string>& values);

}  // namespace dtool::cli
