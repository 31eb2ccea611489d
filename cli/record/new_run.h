// SPDX-License-Identifier: MIT
// A run that is about to start, for run and config: its id and its killfile. What the check left on
// the hosts is deleted if nothing is started.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

class Console;

/// A unique name for a run: `<name>_20261121-034512-3fa91c`, with harmless characters only.
std::string make_run_id(const std::string& name);

/// The current time in UTC, in a killfile's form.
std::string utc_now();

/// A killfile with the run's id and command line, the time, and who starts the run and where. It
/// has no machines yet.
killfiles::Killfile new_killfile(const std::string& run_id,
                                 const std::vector<std::string>& command_line);

/// The killfile that `write` has written. If writing fails, nothing may be started: deletes the
/// run's folders on the hosts, and says why.
std::optional<killfiles::Killfile> write_or_discard(
    Console& console, ssh::Remote& remote, const std::string& run_id,
    const std::function<killfiles::Killfile()>& write);

/// Deletes the run's folder on hosts that were checked but where nothing was started, and the tree
/// in it. After an interrupt no host is asked: a later run deletes such folders when they are a day
/// old.
void discard_run_folders(ssh::Remote& remote, const std::string& run_id);

}  // namespace dtool::cli
