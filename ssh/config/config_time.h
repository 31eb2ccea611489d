// SPDX-License-Identifier: MIT
// Times as OpenSSH's configuration writes them.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace dtool::ssh {

/// Reads `90`, `1m30s`, `2h`, `1d`, `1w` (sshd_config(5), TIME FORMATS); nothing for any other text
/// and for more than a year.
std::optional<std::chrono::seconds> read_config_time(std::string_view text);

}  // namespace dtool::ssh
