// `dtool-host session LOG`: leads a job, in its state folder. It runs `script`, shows the log where
// the session has a terminal, and records the end. Where the folder has a file `supervise`, it
// supervises the machine's part of a run, and on machine 0 the whole run.
#pragma once

#include <string>

namespace dtool::host {

/// The session's exit code: the script's last one.
int run_session(const std::string& log);

}  // namespace dtool::host
