// SPDX-License-Identifier: MIT
#include "ssh/script.h"

#include <fmt/format.h>

#include <utility>

#include "ssh/wire/words.h"

namespace dtool::ssh {
namespace {

/// Ends each script. Without it the launcher died while it sent, and half a script may do something
/// else: half of `rm -rf ~/.dtool/runs/x`, say.
constexpr std::string_view kWhole = "\n#whole";

/// For `mapfile -d` and $! of a process substitution.
constexpr int kOldestBash = 404;

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

std::optional<std::string_view> behind_mark(std::string_view output, std::string_view mark) {
  while (!output.empty()) {
    std::string_view line = host::cut_line(output);
    if (line.ends_with('\r')) line.remove_suffix(1);  // a log-in that goes through a terminal
    if (line.ends_with(mark)) return output;  // a prompt without its newline may stand before it
  }
  return std::nullopt;
}

std::optional<std::string> find_answer(const Answers& answers, const std::string& name) {
  const auto found = answers.find(name);
  if (found == answers.end()) return std::nullopt;
  return found->second;
}

}  // namespace dtool::ssh
