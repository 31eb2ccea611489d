// SPDX-License-Identifier: MIT
// Works like a shell, but refuses `~user` and defaults.
#include "trainer/data/expand_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "trainer/settings/usage_error.h"

namespace dtool::trainer {
namespace {

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

struct Expansion {
  const std::string& key;
  const std::string& text;
  const Environment& environment;

  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("{} '{}': {}", key, text, why),
                     "~, $NAME and ${NAME} are replaced on each machine; $$ is a $");
  }

  std::string value_of(const std::string& name) const {
    const auto value = environment(name);
    if (!value) refuse(fmt::format("the environment variable {} is not set", name));
    if (value->empty()) refuse(fmt::format("the environment variable {} is empty", name));
    return *value;
  }

  /// Replaces the variable that begins with the `$` at `at`; returns the place after it.
  std::size_t variable(std::size_t at, std::string& into) const {
    const std::size_t begin = at + 1;
    if (text.compare(begin, 1, "$") == 0) {
      into += '$';
      return begin + 1;
    }
    const bool braced = text.compare(begin, 1, "{") == 0;
    const auto first = text.begin() + static_cast<std::ptrdiff_t>(begin + (braced ? 1 : 0));
    const auto last = std::find_if_not(first, text.end(), is_of_name);
    const std::string name(first, last);
    if (name.empty()) refuse("a $ without a variable's name");
    if (braced && (last == text.end() || *last != '}')) refuse("a ${ without its }");
    into += value_of(name);
    return static_cast<std::size_t>(last - text.begin()) + (braced ? 1 : 0);
  }
};

}  // namespace

std::filesystem::path expand_path(const std::string& key, const std::string& text,
                                  const Environment& environment) {
  const Expansion expansion{key, text, environment};
  std::string path;
  std::size_t at = 0;
  if (text.starts_with('~')) {
    if (text.size() > 1 && text[1] != '/') expansion.refuse("another user's home");
    path = expansion.value_of("HOME");
    at = 1;
  }
  while (at < text.size()) {
    if (text[at] == '$') {
      at = expansion.variable(at, path);
    } else {
      path += text[at++];
    }
  }
  return path;
}

}  // namespace dtool::trainer
