// SPDX-License-Identifier: MIT
// Kinds of characters, whatever the locale is.
#pragma once

namespace dtool::killfiles {

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

inline bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace dtool::killfiles
