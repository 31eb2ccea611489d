// SPDX-License-Identifier: MIT
// The only place that makes a word safe for a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// `word` as one shell word that arrives unchanged in sh, bash, dash, zsh and ksh, whatever bytes
/// it has. A word of harmless characters stays as it is. Throws std::invalid_argument on a NUL
/// byte, which no argument can hold.
std::string quote(std::string_view word);

/// Each word quoted, joined by blanks: a whole command line.
std::string quote_all(const std::vector<std::string>& words);

/// A quoted path whose leading `~/` (or lone `~`) the remote shell still expands: `"$HOME"/` and
/// the quoted rest.
std::string quote_path(std::string_view path);

/// Whether a path on a host is complete: absolute, `~`, or from `~/`.
bool is_anchored(std::string_view path);

// Splits a line that a user typed into words, as a shell does.

/// Blanks separate words; single and double quotes and backslashes keep them together; nothing is
/// expanded. Throws std::invalid_argument if a quote does not end.
std::vector<std::string> split_shell_words(std::string_view text);

}  // namespace dtool::ssh
