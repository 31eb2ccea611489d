// SPDX-License-Identifier: MIT
// The text of SSH client configuration files as blocks of settings. client_config.cpp resolves them
// for each host.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// One criterion of a Host or Match line. All criteria of a block must hold.
struct ConfigCondition {
  std::string kind;  ///< host, originalhost, user or localuser: what is compared; else "never"
  std::vector<std::string> patterns;  ///< the patterns, with `*` and `?`; a leading `!` denies
  bool negated = false;               ///< `Match !user …`
};

struct ConfigSetting {
  std::string keyword;              ///< lower case
  std::vector<std::string> values;  ///< the values, at least one, with quotes taken off
};

/// Settings that apply together. The conditions are tested once, at the beginning of the block:
/// `User` in a block of `Match user` does not end the block.
struct ConfigBlock {
  std::optional<std::size_t> parent;  ///< an earlier block that must hold too: the block with the
                                      ///< Include
  std::vector<ConfigCondition> conditions;  ///< empty: holds if its parent does
  std::vector<ConfigSetting> settings;
  bool by_hand = false;  ///< the block is from the command line, not from a file
  /// A criterion that only `ssh` can decide, such as `Match exec`, and its place; or empty.
  std::string undecided = {};
};

/// Reads `file` and the files that it includes. Relative Include paths are below `folder`, a
/// leading `~/` below `home`. Throws std::invalid_argument with `file:line:` on a line that cannot
/// be read, and std::system_error if `file` cannot be read.
std::vector<ConfigBlock> read_config_blocks(const std::filesystem::path& file,
                                            const std::filesystem::path& folder,
                                            const std::filesystem::path& home);

/// How the text of a value is read: as in a file, or as one word whose blanks need no quotes.
enum class ValueForm { file, word };

/// One setting. Throws std::invalid_argument on an impossible value.
ConfigSetting read_config_setting(std::string_view keyword, std::string_view value, ValueForm form);

// The keywords of these files (config_keyword.cpp).

/// Who follows a setting: `ssh` alone, so that dtool asks only whether it is there, dtool itself,
/// or `ssh` where it makes no difference to dtool. Host, Match and Include are of the last.
enum class KeywordUse { unknown, by_ssh, by_dtool, by_nobody };
KeywordUse use_of(std::string_view keyword);

/// Notes, once for each place, that the keyword in `place` (`FILE:LINE`) is unknown to `ssh`, which
/// refuses the whole file for it. dtool goes on: an OpenSSH that is newer than this dtool may know
/// it. Says nothing if one of the patterns of IgnoreUnknown matches.
void note_unless_known(std::string_view keyword, const std::string& place,
                       const std::vector<std::string>& ignored);

// Times as OpenSSH's configuration writes them.

/// Reads `90`, `1m30s`, `2h`, `1d`, `1w` (sshd_config(5), TIME FORMATS); nothing for any other text
/// and for more than a year.
std::optional<std::chrono::seconds> read_config_time(std::string_view text);

// What the values of SSH client configuration mean: patterns of hosts and users, and text with
// tokens and variables in it.

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
