#include "ssh/script.h"

#include <fmt/format.h>

#include <algorithm>

#include "ssh/quote.h"

namespace dtool::ssh {
namespace {

constexpr std::string_view kMark = "dtool-answer ";

/// Ends each script. Without it the launcher died while it sent, and half a script may do something
/// else: half of `rm -rf ~/.dtool/runs/x`, say.
constexpr std::string_view kWhole = "\n#whole";

}  // namespace

Command bash(std::string_view text) {
  // `bash -s` would read its script a byte at a time. Nothing here needs more quoting than any
  // shell has.
  return {"exec bash -c 't=$(cat); [ \"${t: -6}\" = \"#whole\" ] && eval \"$t\"' dtool",
          std::string(text).append(kWhole)};
}

std::string_view answer_function() {
  return "answer() { local text=$2; printf 'dtool-answer %s=%s\\n' \"$1\" \"${text//$'\\n'/ }\"; "
         "}\n";
}

std::multimap<std::string, std::string> read_answers(std::string_view output) {
  std::multimap<std::string, std::string> answers;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    std::string_view line = output.substr(0, end);
    output.remove_prefix(std::min(end + 1, output.size()));
    // A prompt without its newline may stand before the mark.
    const std::size_t mark = line.find(kMark);
    if (mark == line.npos) continue;
    line.remove_prefix(mark + kMark.size());
    const std::size_t equals = line.find('=');
    if (equals == line.npos) continue;
    if (line.ends_with('\r')) line.remove_suffix(1);  // a log-in that goes through a terminal
    answers.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return answers;
}

std::optional<std::string> find_answer(const std::multimap<std::string, std::string>& answers,
                                       const std::string& name) {
  const auto found = answers.find(name);
  if (found == answers.end()) return std::nullopt;
  return found->second;
}

std::string write_file(std::string_view name, std::string_view content) {
  const std::string file = quote(name);
  return fmt::format("printf %s {0} > ./{1}.new && mv -f ./{1}.new ./{1}", quote(content), file);
}

}  // namespace dtool::ssh
