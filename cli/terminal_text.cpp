// SPDX-License-Identifier: MIT
#include "cli/terminal_text.h"

#include <fmt/format.h>
#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <cwchar>

namespace dtool::cli {
namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

struct Character {
  std::size_t bytes;
  std::size_t columns;
};

/// The first of a text that is not empty. What is no UTF-8, or unknown, takes a column.
Character first_character(std::string_view text) {
  if (static_cast<unsigned char>(text[0]) < 0x80) return {1, 1};
  // The user's own locale may not be one of UTF-8.
  static const locale_t kUtf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  std::size_t bytes = 1;
  while (bytes < text.size() && !begins_character(text[bytes])) ++bytes;
  if (kUtf8 == nullptr) return {bytes, 1};
  const locale_t former = ::uselocale(kUtf8);
  wchar_t wide = 0;
  std::mbstate_t state{};
  const bool is_whole = std::mbrtowc(&wide, text.data(), bytes, &state) == bytes;
  const int columns = is_whole ? ::wcwidth(wide) : 1;
  ::uselocale(former);
  return {bytes, columns < 0 ? 1 : static_cast<std::size_t>(columns)};
}

/// Where the escape sequence that begins at `at` has its last character (ECMA-48).
std::size_t end_of_escape(std::string_view text, std::size_t at) {
  const auto skip = [&text](std::size_t from, char least, char most) {
    while (from < text.size() && text[from] >= least && text[from] <= most) ++from;
    return from;
  };
  if (text.substr(at + 1).starts_with('[')) return skip(at + 2, ' ', '?');
  if (text.substr(at + 1).starts_with(']')) {  // a window's title, up to a bell
    const std::size_t end = text.find('\a', at);
    return end == text.npos ? text.size() : end;
  }
  return skip(at + 1, ' ', '/');
}

std::string wrapped_line(std::string_view line, std::size_t columns, std::size_t indent) {
  std::string shown;
  std::size_t used = 0;
  std::size_t blank = line.npos;  // the last one in `shown` where the line may break
  std::size_t behind_blank = 0;   // columns up to it
  while (!line.empty()) {
    const Character each =
        line[0] == '\x1b' ? Character{end_of_escape(line, 0) + 1, 0} : first_character(line);
    used += each.columns;
    if (line[0] == ' ' && used > indent) {
      blank = shown.size();
      behind_blank = used;
    } else if (used > columns && blank != line.npos) {
      shown.replace(blank, 1, "\n" + std::string(indent, ' '));
      used += indent - behind_blank;
      blank = line.npos;
    }
    shown += line.substr(0, each.bytes);
    line.remove_prefix(std::min(each.bytes, line.size()));
  }
  return shown;
}

}  // namespace

std::string as_drawn(std::string_view line) {
  const std::size_t end = line.find_last_not_of("\r\n") + 1;
  const std::string_view text = line.substr(0, end);
  return std::string(text.substr(text.rfind('\r') + 1)) + (line.ends_with('\n') ? "\n" : "");
}

std::size_t length(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character each = first_character(text);
    columns += each.columns;
    text.remove_prefix(each.bytes);
  }
  return columns;
}

std::string cut(std::string_view text, std::size_t columns) {
  if (length(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::size_t at = 0;
  for (std::size_t used = 0; at < text.size();) {
    const Character each = first_character(text.substr(at));
    used += each.columns;
    if (used >= columns) break;
    at += each.bytes;
  }
  return std::string(text.substr(0, at)) + "…";
}

std::string wrapped(std::string_view text, std::size_t columns,
                    std::size_t (*indent_of)(std::string_view line)) {
  std::string shown;
  for (;;) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    shown += wrapped_line(line, columns, indent_of(line));
    if (end == text.npos) return shown;
    shown += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string without_controls(std::string_view text) {
  std::string clean;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char each = text[i];
    if (each == '\x1b') {
      i = end_of_escape(text, i);
    } else if (each == '\t' || each == '\n') {
      clean += ' ';
    } else if (static_cast<unsigned char>(each) >= 0x20 && each != 0x7f) {
      clean += each;
    }
  }
  return printable(clean, Kept::nothing);
}

std::string counted(std::size_t number, std::string_view noun) {
  const char* ending = number == 1 ? "" : noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", number, noun, ending);
}

std::string duration_text(std::int64_t seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  if (seconds < kMinute) return fmt::format("{}s", std::max<std::int64_t>(seconds, 0));
  if (seconds < kHour) return fmt::format("{}m {:02}s", seconds / kMinute, seconds % kMinute);
  if (seconds < kDay) return fmt::format("{}h {:02}m", seconds / kHour, seconds % kHour / kMinute);
  return fmt::format("{}d {:02}h", seconds / kDay, seconds % kDay / kHour);
}

}  // namespace dtool::cli
