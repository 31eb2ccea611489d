// SPDX-License-Identifier: MIT
// Unique names and secrets: run ids, tokens, keys.
#pragma once

#include <cstddef>
#include <string>

namespace dtool::ssh {

/// That many random bytes in hex, good for keys. Throws std::system_error.
std::string random_hex(std::size_t bytes);

}  // namespace dtool::ssh
