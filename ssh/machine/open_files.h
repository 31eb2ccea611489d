// The limit of open files, which decides how many hosts can be at work at once.
#pragma once

#include <cstddef>

namespace dtool::ssh {

/// Raises the limit as far as so many hosts want, `width` of them at work at once, and returns how
/// many of them it lets be at work. Throws std::runtime_error if it is too low to hold a
/// connection to each.
std::size_t make_room_for_files(std::size_t hosts, std::size_t width);

}  // namespace dtool::ssh
