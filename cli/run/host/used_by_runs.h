// SPDX-License-Identifier: MIT
// What runs on this host may still need of what dtool brought here.
#pragma once

#include <string>

namespace dtool::host {

/// A run that has not ended and may use what has this hash in its path: a trainer, an environment.
/// On this host or on another with this home folder: a run's script names them. Empty: there is
/// none.
std::string run_that_uses(const std::string& hash);

}  // namespace dtool::host
