// Arbitrary bytes in TOML strings. TOML holds UTF-8 only, but a path or an argument is any bytes;
// those that are no UTF-8 travel as code points from a private corner of Unicode, U+10FE80 (byte
// 0x80) to U+10FEFF (byte 0xff).
#pragma once

#include <string>
#include <string_view>

namespace dtool::killfiles {

/// `bytes` as a quoted TOML string on one line.
std::string to_toml(std::string_view bytes);

/// The bytes that to_toml wrote, from the string that a TOML reader gives.
std::string from_toml(std::string_view text);

}  // namespace dtool::killfiles
