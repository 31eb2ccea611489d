// `dtool-host session LOG`: leads a job, in its state folder. It runs `script`, shows the log if
// the session has a terminal, and records the end. If the folder has a file `supervise`, it
// supervises the machine's part of a run, and on machine 0 the whole run.
#pragma once

#include <string>

namespace dtool::host {

/// Returns the exit code of the script's last run.
int run_session(const std::string& log);

}  // namespace dtool::host
