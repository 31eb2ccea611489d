// SPDX-License-Identifier: MIT
// What the values of SSH client configuration mean: patterns of hosts and users, and text with
// tokens and variables in it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// Whether one of the patterns matches: `*` stands for any characters, `?` for one. If a pattern
/// with `!` matches, the answer is no, whatever the others say.
bool matches_any(std::string_view text, const std::vector<std::string>& patterns);

/// The text that each token (`%h` …) stands for, by its letter.
using ConfigTokens = std::map<char, std::string>;

/// `text` with its tokens replaced; an unknown token stays.
std::string expand_tokens(std::string_view text, const ConfigTokens& tokens);

/// A path with tokens, `${NAME}` and a leading `~` replaced. A variable that is not set stays, so
/// that messages show it.
std::filesystem::path expand_path(std::string_view text, const ConfigTokens& tokens);

}  // namespace dtool::ssh
