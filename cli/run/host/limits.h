// How many files this process may have open: machine 0's session has a connection to each machine
// of the run, and what it starts gets the limit that it had itself.
#pragma once

namespace dtool::host {

/// As many as this user may have.
void raise_open_files();

/// As it was before. Safe between fork and exec.
void restore_open_files();

}  // namespace dtool::host
