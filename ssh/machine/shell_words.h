// SPDX-License-Identifier: MIT
// Splits a line that a user typed into words, as a shell does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// Blanks separate words; single and double quotes and backslashes keep them together; nothing is
/// expanded. Throws std::invalid_argument if a quote does not end.
std::vector<std::string> split_shell_words(std::string_view text);

}  // namespace dtool::ssh
