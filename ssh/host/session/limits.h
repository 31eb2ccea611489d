// SPDX-License-Identifier: MIT
// The limit of open files. Machine 0's session has a connection to each machine of the run, so it
// raises the limit; its children get the original one.
#pragma once

namespace dtool::host {

/// Raises the limit as far as this user may.
void raise_open_files();

/// Restores the original limit. Safe between fork and exec.
void restore_open_files();

}  // namespace dtool::host
