// SPDX-License-Identifier: MIT
// The keywords of SSH client configuration files.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtool::ssh {

/// Notes, once for each place, that the keyword in `place` (`FILE:LINE`) is unknown to `ssh`, which
/// refuses the whole file for it. dtool goes on: an OpenSSH that is newer than this dtool may know
/// it. Says nothing if one of the patterns of IgnoreUnknown matches.
void note_unless_known(std::string_view keyword, const std::string& place,
                       const std::vector<std::string>& ignored);

// Times as OpenSSH's configuration writes them.

/// Reads `90`, `1m30s`, `2h`, `1d`, `1w` (sshd_config(5), TIME FORMATS); nothing for any other text
/// and for more than a year.
std::optional<std::chrono::seconds> read_config_time(std::string_view text);

}  // namespace dtool::ssh
