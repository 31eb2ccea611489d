// SPDX-License-Identifier: MIT
// dtool's version, for both programs. Only its .cpp is compiled with the number, so that a new
// version compiles nothing else again.
#pragma once

#include <string_view>

namespace dtool::killfiles {

/// `0.2.0`
std::string_view dtool_version();

}  // namespace dtool::killfiles
