// SPDX-License-Identifier: MIT
// Which runs go on on this host, and what they may still need of what dtool brought here.
#pragma once

#include <string>
#include <vector>

namespace dtool::host {

/// A run that has not ended and may use what has this hash in its path: a trainer, an environment.
/// On this host or on another with this home folder: a run's script names them. Empty: there is
/// none.
std::string run_that_uses(const std::string& hash);

/// The runs that have processes of this user's here and have not ended, sorted. The ids are as the
/// processes bear them, and may be any text.
std::vector<std::string> running_runs();

}  // namespace dtool::host
