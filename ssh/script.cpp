// SPDX-License-Identifier: MIT
#include "ssh/script.h"

#include <fmt/format.h>

#include <utility>

#include "ssh/wire/words.h"

namespace dtool::ssh {
namespace {

constexpr std::string_view kAnswerMark = "dtool-answer ";

/// Ends each script. Without it the launcher died while it sent, and half a script may do something
/// else: half of `rm -rf ~/.dtool/runs/x`, say.
constexpr std::string_view kWhole = "\n#whole";

/// For `mapfile -d` and $! of a process substitution.
constexpr int kOldestBash = 404;

/// Name and value where the line is an answer.
std::optional<std::pair<std::string, std::string>> read_answer(std::string_view line) {
  // A prompt without its newline may stand before the mark.
  const std::size_t mark = line.find(kAnswerMark);
  if (mark == line.npos) return std::nullopt;
  line.remove_prefix(mark + kAnswerMark.size());
  const std::size_t equals = line.find('=');
  if (equals == line.npos) return std::nullopt;
  if (line.ends_with('\r')) line.remove_suffix(1);  // a log-in that goes through a terminal
  return std::pair(std::string(line.substr(0, equals)), std::string(line.substr(equals + 1)));
}

}  // namespace

Command bash(std::string_view text) {
  std::string input = std::string(text).append(kWhole);
  // `bash -s` would read its script a byte at a time, and `$(cat)` costs a process. With -N, bash
  // reads thousands at a time, and counts bytes where a character is one. Nothing here needs more
  // quoting than any shell has.
  std::string line = fmt::format(
      "exec bash -c '((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= {})) || "
      "{{ echo \"bash $BASH_VERSION is too old: dtool needs 4.4 or later\" >&2; exit {}; }}; "
      "LC_ALL=C IFS= read -rN {} t 2> /dev/null; "
      "[ \"${{t: -6}}\" = \"#whole\" ] && eval \"$t\"' dtool",
      kOldestBash, kBashIsTooOld, input.size());
  return {std::move(line), std::move(input)};
}

std::string_view answer_function() {
  return "answer() { local text=$2; printf 'dtool-answer %s=%s\\n' \"$1\" \"${text//$'\\n'/ }\"; "
         "}\n";
}

std::map<std::string, std::string_view> parts_by_answer(std::string_view output,
                                                        const std::string& name) {
  std::map<std::string, std::string_view> parts;
  std::string_view* part = nullptr;
  while (!output.empty()) {
    const auto answer = read_answer(host::cut_line(output));
    if (answer && answer->first == name) {
      part = &parts[answer->second];
      *part = output.substr(0, 0);
    } else if (part != nullptr) {
      *part = {part->data(), static_cast<std::size_t>(output.data() - part->data())};
    }
  }
  return parts;
}

std::optional<std::string> find_answer(const Answers& answers, const std::string& name) {
  const auto found = answers.find(name);
  if (found == answers.end()) return std::nullopt;
  return found->second;
}

}  // namespace dtool::ssh
