#include "cli/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace dtool::cli {
namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
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

/// A character of UTF-8, or one byte that begins none.
struct Character {
  std::size_t size = 1;
  std::optional<char32_t> code;  ///< absent: no UTF-8
};

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {1, first};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + size > text.size()) return {};
  constexpr unsigned char kOfFirst[] = {0x1f, 0x0f, 0x07};
  char32_t code = first & kOfFirst[size - 2];
  for (std::size_t i = at + 1; i < at + size; ++i) {
    if (begins_character(text[i])) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr char32_t kLeast[] = {0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[size - 2] || code > 0x10ffff || is_surrogate) return {};
  return {size, code};
}

/// Whether a terminal may obey it instead of showing it. Those of U+202A to U+202E and U+2066 to
/// U+2069 turn the direction of all that follows.
bool steers(char32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

/// The size of `ESC [ NUMBERS m` at `at`; 0: another sequence stands there.
std::size_t color_at(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongest = 40;
  if (!text.substr(at).starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;:", at + 2);
  return end != text.npos && text[end] == 'm' && end - at < kLongest ? end + 1 - at : 0;
}

}  // namespace

std::string printable(std::string_view text, Kept kept) {
  std::string shown;
  shown.reserve(text.size());
  bool is_colored = false;
  for (std::size_t at = 0; at < text.size();) {
    const char each = text[at];
    const bool knows_colors = kept == Kept::colored_lines || kept == Kept::bare_lines;
    if (const std::size_t color = knows_colors ? color_at(text, at) : 0; color > 0) {
      is_colored = kept == Kept::colored_lines;
      if (is_colored) shown += text.substr(at, color);
      at += color;
      continue;
    }
    const Character character = character_at(text, at);
    if ((each == '\n' || each == '\t') && kept != Kept::nothing) {
      // A colour that a program leaves on ends with its line, before what others say.
      if (each == '\n' && std::exchange(is_colored, false)) shown += "\x1b[0m";
      shown += each;
    } else if (!character.code || (steers(*character.code) && character.size == 1)) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(each));
    } else if (steers(*character.code)) {
      shown += fmt::format("\\u{:04x}", static_cast<unsigned>(*character.code));
    } else {
      shown += text.substr(at, character.size);
    }
    at += character.size;
  }
  if (is_colored) shown += "\x1b[0m";
  return shown;
}

std::string as_drawn(std::string_view line) {
  const std::size_t end = line.find_last_not_of("\r\n") + 1;
  const std::string_view text = line.substr(0, end);
  return std::string(text.substr(text.rfind('\r') + 1)) + (line.ends_with('\n') ? "\n" : "");
}

std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string padded(std::string_view text, std::size_t columns) {
  return std::string(text).append(columns - std::min(columns, length(text)), ' ');
}

std::string cut(std::string_view text, std::size_t columns) {
  if (length(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::size_t at = 0;
  for (std::size_t count = 0; at < text.size(); ++at) {
    if (!begins_character(text[at])) continue;
    if (++count == columns) break;
  }
  return std::string(text.substr(0, at)) + "…";
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
