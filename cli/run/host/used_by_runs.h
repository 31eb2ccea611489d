// SPDX-License-Identifier: MIT
// What runs on this host may still need of what dtool brought here.
#pragma once

#include <string>

namespace dtool::host {

/// Whether a run that has not ended may use what has this hash in its path: a trainer, an
/// environment. On this host or on another with this home folder: a run's script names them.
bool is_used_by_a_run(const std::string& hash);

}  // namespace dtool::host
