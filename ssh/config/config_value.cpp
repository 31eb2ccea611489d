// SPDX-License-Identifier: MIT
#include "ssh/config/config_value.h"

#include <cstdlib>

#include "ssh/machine/home_folder.h"

namespace dtool::ssh {
namespace {

// `*` any characters, `?` one.
bool matches(std::string_view text, std::string_view pattern) {
  std::size_t t = 0, p = 0, star = std::string_view::npos, after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++t, ++p;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

// `${NAME}`; a variable that is not set stays, so that messages show what is missing.
std::string expand_variables(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("${");
    const std::size_t end = begin == std::string_view::npos ? begin : text.find('}', begin);
    if (end == std::string_view::npos) return out.append(text);
    out += text.substr(0, begin);
    const std::string name(text.substr(begin + 2, end - begin - 2));
    const char* value = std::getenv(name.c_str());
    out += value != nullptr ? std::string_view(value) : text.substr(begin, end + 1 - begin);
    text.remove_prefix(end + 1);
  }
}

}  // namespace

bool matches_any(std::string_view text, const std::vector<std::string>& patterns) {
  bool found = false;
  for (const std::string_view pattern : patterns) {
    if (pattern.starts_with('!')) {
      if (matches(text, pattern.substr(1))) return false;
    } else {
      found = found || matches(text, pattern);
    }
  }
  return found;
}

std::string expand_tokens(std::string_view text, const ConfigTokens& tokens) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto token =
        text[i] == '%' && i + 1 < text.size() ? tokens.find(text[i + 1]) : tokens.end();
    if (token == tokens.end()) {
      out += text[i];
    } else {
      out += token->second;
      ++i;
    }
  }
  return out;
}

std::filesystem::path expand_path(std::string_view text, const ConfigTokens& tokens) {
  return from_home(expand_variables(expand_tokens(text, tokens)));
}

}  // namespace dtool::ssh
