// SPDX-License-Identifier: MIT
#include "ssh/machine/shell_words.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace dtool::ssh {
namespace {

/// Whether a backslash before `each` is no character of its own, inside that quote.
bool is_escaped(char each, char quote) {
  if (quote == '\'') return false;
  return quote == '\0' || std::string_view("\"\\$`\n").find(each) != std::string_view::npos;
}

}  // namespace

std::vector<std::string> split_shell_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool is_in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char each = text[i];
    if (each == '\\' && i + 1 < text.size() && is_escaped(text[i + 1], quote)) {
      ++i;
      if (text[i] == '\n') continue;  // a line that goes on
      word += text[i];
      is_in_word = true;
    } else if (quote != '\0') {
      if (each == quote) {
        quote = '\0';
      } else {
        word += each;
      }
    } else if (each == '\'' || each == '"') {
      quote = each;
      is_in_word = true;
    } else if (each == ' ' || each == '\t' || each == '\n') {
      if (is_in_word) words.push_back(std::exchange(word, {}));
      is_in_word = false;
    } else {
      word += each;
      is_in_word = true;
    }
  }
  if (quote != '\0') throw std::invalid_argument(fmt::format("a quote does not end in: {}", text));
  if (is_in_word) words.push_back(word);
  return words;
}

}  // namespace dtool::ssh
