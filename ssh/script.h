// Bash scripts for hosts: how one is sent, and how its answers come back through whatever a login
// shell prints first.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/number.h"
#include "ssh/remote.h"

namespace dtool::ssh {

/// How bash() ends where the host's bash is older than 4.4, and has said so on standard error.
inline constexpr int kBashIsTooOld = 69;

/// A command that runs `text` in bash. The text travels on standard input, so it may be long and
/// its quoting meets no login shell; nothing is left for the script to read there.
Command bash(std::string_view text);

/// Shell text that defines `answer NAME VALUE`, which prints one `NAME=VALUE` line that
/// read_answers understands; newlines in a value become blanks. Put first in a script.
std::string_view answer_function();

/// What a script answered, by name; a name may come several times.
using Answers = std::multimap<std::string, std::string>;

/// The answers in a script's output. Lines of others, a talkative ~/.bashrc's for one, are left
/// out.
Answers read_answers(std::string_view output);

/// The first answer of that name.
std::optional<std::string> find_answer(const Answers& answers, const std::string& name);

/// All answers of that name, in their order.
std::vector<std::string> every_answer(const Answers& answers, const std::string& name);

/// The first answer of that name, where that is a number.
template <typename Number>
std::optional<Number> find_number(const Answers& answers, const std::string& name) {
  const auto text = find_answer(answers, name);
  return text ? read_number<Number>(*text) : std::nullopt;
}

/// What stands behind each answer called `name` until the next one of it, by their values; views
/// into `output`. For a script that answers for several things.
std::map<std::string, std::string_view> parts_by_answer(std::string_view output,
                                                        const std::string& name);

}  // namespace dtool::ssh
