// What holds a job's terminal, so that no log-in ends the job: screen; where that is missing, tmux;
// where that is missing too, nothing does, and the job has no terminal.
#pragma once

#include <string>

namespace dtool::host {

enum class Holder { screen, tmux, none };

/// As the file `holder` of a state folder has it.
std::string name_of(Holder holder);

/// The first that is installed.
Holder choose_holder();

/// Has `dtool-host session LOG` begin in the state folder, in a session of that name. Why that did
/// not go well, or empty.
std::string hold_session(Holder holder, const std::string& session, const std::string& state,
                         const std::string& log);

}  // namespace dtool::host
