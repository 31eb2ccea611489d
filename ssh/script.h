// SPDX-License-Identifier: MIT
// Bash scripts for hosts: how a script is sent, and how its answers are read despite the output of
// a login shell.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/remote.h"

namespace dtool::ssh {

/// The exit code of bash() if the host's bash is older than 4.4; standard error says so.
inline constexpr int kBashIsTooOld = 69;

/// A command that runs `text` in bash. The text travels on standard input, so it may be long and no
/// login shell sees its quoting. The script itself has no standard input.
Command bash(std::string_view text);

/// What stands in a script's output behind the first line that ends with `mark`; lines before it
/// are a talkative ~/.bashrc's, for one. Nothing if there is no such line.
std::optional<std::string_view> behind_mark(std::string_view output, std::string_view mark);

/// What a script answered, by name; a name may come several times.
using Answers = std::multimap<std::string, std::string>;

/// The first answer of that name.
std::optional<std::string> find_answer(const Answers& answers, const std::string& name);

}  // namespace dtool::ssh
