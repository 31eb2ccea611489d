// SPDX-License-Identifier: MIT
#include "ssh/wire/words.h"

#include <algorithm>
#include <stdexcept>

namespace dtool::host {

std::string_view cut(std::string_view& text, char end) {
  const std::string_view part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

std::string_view cut_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\n";
  const std::size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
  const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  const auto count = std::ranges::count(text, separator);
  for (auto i = count; i >= 0; --i) parts.push_back(cut(text, separator));
  return parts;
}

std::string_view last_line(std::string_view text, std::string_view passed_over) {
  std::string_view last;
  while (!text.empty()) {
    std::string_view line = cut_line(text);
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    const bool is_passed_over = !passed_over.empty() && line.starts_with(passed_over);
    if (!line.empty() && !is_passed_over) last = line;
  }
  return last;
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& each : lower)
    if (each >= 'A' && each <= 'Z') each = static_cast<char>(each - 'A' + 'a');
  return lower;
}

std::string as_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

int number_among(const std::vector<std::string>& words, std::size_t at, int least) {
  constexpr int kMost = 10'000'000;
  const auto number = at < words.size() ? parse_number<int>(words[at]) : std::nullopt;
  if (!number || *number < least || *number > kMost)
    throw std::runtime_error("its word " + std::to_string(at + 1) + " is not a number from " +
                             std::to_string(least) + " to " + std::to_string(kMost));
  return *number;
}

std::vector<std::pair<std::string, std::string>> read_pairs(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!text.empty()) {
    const std::string_view line = cut_line(text);
    const std::size_t equals = line.find('=');
    if (equals != line.npos) pairs.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return pairs;
}

}  // namespace dtool::host
