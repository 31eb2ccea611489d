// SPDX-License-Identifier: MIT
#include "killfiles/printable.h"

#include <fmt/format.h>

#include <utility>

namespace dtool::killfiles {

namespace {

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {1, first};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + size > text.size()) return {};
  constexpr unsigned char kOfFirst[] = {0x1f, 0x0f, 0x07};
  char32_t code = first & kOfFirst[size - 2];
  for (std::size_t i = at + 1; i < at + size; ++i) {
    if (!continues_character(text[i])) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr char32_t kLeast[] = {0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[size - 2] || code > 0x10ffff || is_surrogate) return {};
  return {size, code};
}

namespace {

/// Whether a terminal may obey it instead of showing it: control characters, ends of lines (U+2028,
/// U+2029), and what turns the direction of the text around it.
bool steers(char32_t code) {
  const bool turns = code == 0x061c || code == 0x200e || code == 0x200f ||
                     (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 || turns;
}

/// The size of `ESC [ NUMBERS m` at `at`; 0: another sequence stands there.
std::size_t color_at(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongest = 40;
  if (!text.substr(at).starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;:", at + 2);
  return end != text.npos && text[end] == 'm' && end - at < kLongest ? end + 1 - at : 0;
}

}  // namespace

std::string printable(std::string_view text, Allowed kept) {
  std::string shown;
  shown.reserve(text.size());
  bool is_colored = false;
  for (std::size_t at = 0; at < text.size();) {
    const char each = text[at];
    const bool knows_colors = kept == Allowed::colored_lines || kept == Allowed::bare_lines;
    if (const std::size_t color = knows_colors ? color_at(text, at) : 0; color > 0) {
      is_colored = kept == Allowed::colored_lines;
      if (is_colored) shown += text.substr(at, color);
      at += color;
      continue;
    }
    const Character character = character_at(text, at);
    if ((each == '\n' || each == '\t') && kept != Allowed::nothing) {
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

std::string printable_start(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return printable(text, Allowed::nothing);
  while (longest > 0 && continues_character(text[longest])) --longest;
  return printable(text.substr(0, longest), Allowed::nothing) + "…";
}

std::string printable_words(std::string_view text, std::size_t longest) {
  return printable_start(text.substr(0, text.find_last_not_of(" \t\r\n") + 1), longest);
}

}  // namespace dtool::killfiles
