// SPDX-License-Identifier: MIT
// The limit of open files, which bounds how many hosts can be served at once.
#pragma once

#include <cstddef>

namespace dtool::ssh {

/// Raises the limit for `hosts` hosts, `width` of them at once. Returns how many hosts at once it
/// allows. Throws std::runtime_error if it is too low for one connection to each host.
std::size_t make_room_for_files(std::size_t hosts, std::size_t width);

/// Whether the limit then allows a dtool-host that waits for requests on each of them, too.
bool has_room_for_files(std::size_t hosts, std::size_t width);

}  // namespace dtool::ssh
