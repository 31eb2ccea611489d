// Text as a terminal can show it: without what would steer the terminal, and as wide as there is
// room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ssh/printable.h"

namespace dtool::cli {

using ssh::Kept;
using ssh::printable;

/// Of a line that a program drew over with carriage returns, what stands there last; its end stays.
std::string as_drawn(std::string_view line);

/// Characters of UTF-8 text. Wide ones of East Asia count as one.
std::size_t length(std::string_view text);

/// `text` with blanks behind it, `columns` characters in all or more.
std::string padded(std::string_view text, std::size_t columns);

/// The first `columns` characters of UTF-8 text, the last of them an ellipsis where some are left
/// out.
std::string cut(std::string_view text, std::size_t columns);

/// `text` without escape sequences and control characters; a tab becomes a blank. What else a
/// terminal would obey is shown as printable() shows it.
std::string without_controls(std::string_view text);

/// `1 host`, `3 hosts`, `2 processes`: `noun` in the form that the number asks for.
std::string counted(std::size_t number, std::string_view noun);

/// `59s`, `3m 20s`, `2h 05m`, `3d 04h`.
std::string duration_text(std::int64_t seconds);

}  // namespace dtool::cli
