// Bash scripts for hosts: how a script is sent, and how its answers are read despite the output of
// a login shell.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/number.h"
#include "ssh/remote.h"

namespace dtool::ssh {

/// The exit code of bash() if the host's bash is older than 4.4; standard error says so.
inline constexpr int kBashIsTooOld = 69;

/// A command that runs `text` in bash. The text travels on standard input, so it may be long and no
/// login shell sees its quoting. The script itself has no standard input.
Command bash(std::string_view text);

/// Shell text that defines `answer NAME VALUE`, which prints one `NAME=VALUE` line for
/// read_answers(). Line ends in a value become blanks. It comes first in a script.
std::string_view answer_function();

/// What a script answered, by name; a name may come several times.
using Answers = std::multimap<std::string, std::string>;

/// The answers in a script's output. Other lines, such as a ~/.bashrc's greeting, are skipped.
Answers read_answers(std::string_view output);

/// The first answer of that name.
std::optional<std::string> find_answer(const Answers& answers, const std::string& name);

/// All answers of that name, in their order.
std::vector<std::string> every_answer(const Answers& answers, const std::string& name);

/// The first answer of that name, if it is a number.
template <typename Number>
std::optional<Number> find_number(const Answers& answers, const std::string& name) {
  const auto text = find_answer(answers, name);
  return text ? read_number<Number>(*text) : std::nullopt;
}

/// The text between each answer called `name` and the next one, by their values; views into
/// `output`. For a script that answers for several things.
std::map<std::string, std::string_view> parts_by_answer(std::string_view output,
                                                        const std::string& name);

}  // namespace dtool::ssh
