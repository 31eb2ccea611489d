// SPDX-License-Identifier: MIT
// Escapes bytes and reads them back. Both directions are exact: bytes that spell a code point of
// the private range are escaped, too.
#include "killfiles/toml_bytes.h"

#include <fmt/format.h>

namespace dtool::killfiles {
namespace {

unsigned at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
}

bool is_private_corner(std::string_view text) {
  return at(text, 0) == 0xf4 && at(text, 1) == 0x8f &&
         (at(text, 2) == 0xba || at(text, 2) == 0xbb) && text.size() >= 4;
}

// The length of the UTF-8 sequence at the beginning of `text` (Unicode 15, table 3-7); 0 if there
// is none.
std::size_t sequence_length(std::string_view text) {
  const unsigned first = at(text, 0);
  const unsigned second = at(text, 1);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2   ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0) return 0;
  const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (at(text, i) < 0x80 || at(text, i) > 0xbf) return 0;
  }
  return length;
}

}  // namespace

std::string to_toml(std::string_view bytes) {
  std::string text = "\"";
  while (!bytes.empty()) {
    const unsigned first = at(bytes, 0);
    const std::size_t length = is_private_corner(bytes) ? 0 : sequence_length(bytes);
    if (length == 0) {
      text += fmt::format("\\U{:08X}", 0x10fe00 + first);
    } else if (first < 0x20 || first == 0x7f) {
      text += fmt::format("\\u{:04X}", first);
    } else {
      if (first == '"' || first == '\\') text += '\\';
      text += bytes.substr(0, length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text + '"';
}

std::string to_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const unsigned first = at(bytes, 0);
    const std::size_t length = is_private_corner(bytes) ? 0 : sequence_length(bytes);
    if (length == 0) {
      // U+10FE80 to U+10FEFF, byte by byte
      text += "\xf4\x8f";
      text += static_cast<char>(0xba + ((first - 0x80) >> 6));
      text += static_cast<char>(0x80 + (first & 0x3fu));
    } else {
      text += bytes.substr(0, length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

std::string from_toml(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const bool is_byte = is_private_corner(text);
    bytes += is_byte ? static_cast<char>(0x80 + ((at(text, 2) - 0xba) << 6) + (at(text, 3) - 0x80))
                     : text[0];
    text.remove_prefix(is_byte ? 4 : 1);
  }
  return bytes;
}

}  // namespace dtool::killfiles
