// SPDX-License-Identifier: MIT
// Arbitrary bytes in TOML strings. TOML holds only UTF-8, but a path or an argument may hold any
// bytes. Bytes that are not UTF-8 are written as code points of a private range of Unicode,
// U+10FE80 (byte 0x80) to U+10FEFF (byte 0xff).
#pragma once

#include <string>
#include <string_view>

namespace dtool::killfiles {

/// `bytes` as a quoted TOML string on one line.
std::string to_toml(std::string_view bytes);

/// The same without quotes and escapes, for other formats that hold only UTF-8.
std::string to_utf8(std::string_view bytes);

/// The bytes that to_toml or to_utf8 wrote, from the string that a TOML reader gives.
std::string from_toml(std::string_view text);

}  // namespace dtool::killfiles
