// SPDX-License-Identifier: MIT
// Text for a terminal: without anything that would steer the terminal, and cut to the available
// width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ssh/printable.h"

namespace dtool::cli {

using ssh::Kept;
using ssh::printable;

/// The final state of a line that a program redrew with carriage returns; its line end stays.
std::string as_drawn(std::string_view line);

/// How many columns of a terminal UTF-8 text takes; wide characters take two.
std::size_t length(std::string_view text);

/// The first `columns` columns of UTF-8 text; if some are left out, the last one is an ellipsis.
std::string cut(std::string_view text, std::size_t columns);

/// `text` with lines that take more than `columns` broken at blanks; a longer word stays whole, and
/// a colour takes no column. What goes on begins in the column that `indent_of` says of the line.
std::string wrapped(std::string_view text, std::size_t columns,
                    std::size_t (*indent_of)(std::string_view line));

/// `text` without escape sequences and control characters; a tab becomes a blank. Other bytes that
/// a terminal would obey are shown as in printable().
std::string without_controls(std::string_view text);

/// `1 host`, `3 hosts`, `2 processes`: `noun` in singular or plural.
std::string counted(std::size_t number, std::string_view noun);

/// `59s`, `3m 20s`, `2h 05m`, `3d 04h`.
std::string duration_text(std::int64_t seconds);

}  // namespace dtool::cli
