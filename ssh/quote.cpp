// SPDX-License-Identifier: MIT
// Quoting for the remote shell. All words that dtool puts into a command line pass through here.
#include "ssh/quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace dtool::ssh {
namespace {

// Words that some shell reads as syntax where a command may stand.
constexpr std::array<std::string_view, 21> kReserved = {
    "case",      "coproc", "do",     "done",    "elif",     "else",  "end",
    "esac",      "fi",     "for",    "foreach", "function", "if",    "in",
    "nocorrect", "repeat", "select", "then",    "time",     "until", "while"};

bool is_harmless(char c) {
  // No `%`, which names a job in front; no `~`, `^` or `!`, which expand somewhere.
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("@+:,./-_").find(c) != std::string_view::npos;
}

bool may_stay_bare(std::string_view word) {
  if (word.empty() || std::ranges::find(kReserved, word) != kReserved.end()) return false;
  // `A=b` in front of a command is an assignment, and zsh expands `=b`; `--a=b` is neither.
  const bool is_option = word.front() == '-';
  return std::ranges::all_of(word,
                             [&](char c) { return is_harmless(c) || (c == '=' && is_option); });
}

}  // namespace

std::string quote(std::string_view word) {
  if (word.find('\0') != std::string_view::npos) {
    throw std::invalid_argument(fmt::format("a NUL byte cannot be passed to a command: '{}'",
                                            word.substr(0, word.find('\0'))));
  }
  if (may_stay_bare(word)) return std::string(word);
  std::string quoted = "'";  // scripts of 20 KB pass through here, so not one character at a time
  // Outside of the quotes also what fish and csh read inside of them.
  for (std::size_t mark; (mark = word.find_first_of("'\\!")) != word.npos;
       word.remove_prefix(mark + 1)) {
    quoted.append(word.substr(0, mark)).append("'\\").append(1, word[mark]).append("'");
  }
  return quoted.append(word) + "'";
}

std::string quote_all(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += quote(word);
  }
  return line;
}

bool is_anchored(std::string_view path) {
  return path.starts_with('/') || path == "~" || path.starts_with("~/");
}

std::string quote_path(std::string_view path) {
  if (path == "~") return "\"$HOME\"";
  if (!path.starts_with("~/")) return quote(path);
  const std::string_view rest = path.substr(2);
  return "\"$HOME\"/" + (rest.empty() ? std::string() : quote(rest));
}

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
