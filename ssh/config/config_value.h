// What the values of SSH client configuration mean: patterns of hosts and users, and text with
// tokens and variables in it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// Whether one of the patterns matches: `*` any characters, `?` one. A pattern with `!` that
/// matches denies, whatever stands beside it.
bool matches_any(std::string_view text, const std::vector<std::string>& patterns);

/// What `%h` and its like stand for, by their letters.
using ConfigTokens = std::map<char, std::string>;

/// `text` with its tokens replaced; one that is not in `tokens` stays.
std::string expand_tokens(std::string_view text, const ConfigTokens& tokens);

/// A path with tokens, `${NAME}` and a leading `~` replaced. A variable that is not set stays, so
/// that messages show what is missing.
std::filesystem::path expand_path(std::string_view text, const ConfigTokens& tokens);

}  // namespace dtool::ssh
