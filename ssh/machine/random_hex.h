// Names and secrets that nobody else has: run ids, tokens, keys.
#pragma once

#include <cstddef>
#include <string>

namespace dtool::ssh {

/// So many random bytes in hex, good for keys. Throws std::system_error.
std::string random_hex(std::size_t bytes);

}  // namespace dtool::ssh
