// SPDX-License-Identifier: MIT
// The file of this program, `…/host/SHA256/dtool-host`, and the other versions beside it.
#pragma once

#include <string>

namespace dtool::host {

std::string own_path();

/// Marks this version as used. Removes other versions beside it that were not started for 30 days
/// and that no process here runs.
void remove_old_versions();

}  // namespace dtool::host
