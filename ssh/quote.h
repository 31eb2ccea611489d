// The one place where a word is made safe to cross a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// `word` as one shell word that arrives unchanged in sh, bash, dash, zsh and ksh: spaces, quotes,
/// `$`, newlines and every other byte included. Words of harmless characters alone stay as they
/// are. Throws std::invalid_argument on a NUL byte, which no argument can hold.
std::string quote(std::string_view word);

/// Each word quoted, joined by blanks: a whole command line.
std::string quote_all(const std::vector<std::string>& words);

/// A path whose leading `~/` (or lone `~`) the remote shell shall still expand: `"$HOME"/` and the
/// rest quoted.
std::string quote_path(std::string_view path);

/// Whether a path on a host says by itself where it leads: it is absolute, `~`, or begins with
/// `~/`.
bool is_anchored(std::string_view path);

}  // namespace dtool::ssh
