// SPDX-License-Identifier: MIT
// Starts a job on this host: writes its state folder, and starts a session that survives the end of
// a login.
#pragma once

#include <string>
#include <vector>

#include "ssh/wire/run.h"

namespace dtool::host {

/// Does not throw for a failure of the host: the reply has the reason.
StartReply start_job(const StartRequest& request);

/// The first set-up script that still runs, as `RUN/MACHINE`, but none of that run; or empty.
std::string find_set_up(const std::string& but = {});

// The program that holds a job's terminal, so that the job survives the end of a login: screen,
// else tmux. If both are missing or unusable, the job has no terminal.

enum class Holder { screen, tmux, none };

/// Its name in the file `holder` of a state folder.
std::string name_of(Holder holder);

/// Those that are installed, in the order in which they are tried; `none` is the last.
std::vector<Holder> find_holders();

/// Starts `dtool-host session LOG` in the state folder, in a session of that name. Returns why that
/// failed, or an empty text.
std::string hold_session(Holder holder, const std::string& session, const std::string& state,
                         const std::string& log);

}  // namespace dtool::host
