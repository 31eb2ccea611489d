// Bash scripts for hosts: how one is sent, and how its answers come back through whatever a login
// shell prints first.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/remote.h"

namespace dtool::ssh {

/// How bash() ends where the host's bash is older than 4.4, and has said so on standard error.
inline constexpr int kBashIsTooOld = 69;

/// A command that runs `text` in bash. The text travels on standard input, so it may be long and
/// its quoting meets no login shell; nothing is left for the script to read there.
Command bash(std::string_view text);

/// Shell text that defines `answer NAME VALUE`, which prints one line for parts_by_answer; newlines
/// in a value become blanks. Put first in a script.
std::string_view answer_function();

/// What a script answered, by name; a name may come several times.
using Answers = std::multimap<std::string, std::string>;

/// The first answer of that name.
std::optional<std::string> find_answer(const Answers& answers, const std::string& name);

/// What stands behind each answer called `name` until the next one of it, by their values; views
/// into `output`. Lines before them, a talkative ~/.bashrc's for one, are left out.
std::map<std::string, std::string_view> parts_by_answer(std::string_view output,
                                                        const std::string& name);

}  // namespace dtool::ssh
