// SPDX-License-Identifier: MIT
// `dtool-host session LOG`: leads a job, in its state folder. It runs `script`, shows the log if
// the session has a terminal, and records the end. If the folder has a file `supervise`, it
// supervises the machine's part of a run, and on machine 0 the whole run.
#pragma once

#include <string>

namespace dtool::host {

/// Sets DTOOL_HOST to this program for the scripts that it starts. Its file may be removed.
void tell_script_this_program();

/// The session's exit code: the script's last one.
int run_session(const std::string& log);

}  // namespace dtool::host
