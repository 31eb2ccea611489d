// Starts a run whose plan is complete: the record first, then the sessions; and stays with it where
// that is wanted.
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/launchers/launcher.h"
#include "cli/run/plan.h"
#include "cli/run/report.h"
#include "killfiles/killfile.h"
#include "ssh/fleet.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Whether `dtool run` stays until the run has ended.
enum class Follow { no, yes };

/// Writes the killfile, which names every session that may come to exist. `what` is the
/// experiment's or the program's name.
killfiles::Killfile record_run(const RunPlan& plan, const std::string& what,
                               const std::vector<std::string>& command_line,
                               const ssh::ConnectOptions& connect);

/// Starts what the launcher has for it, or, where some of it does not start, ends the rest again.
/// Returns the exit code: of the whole run where it is followed.
int start_run(Console& console, ssh::Remote& remote, const Launcher& launcher, const RunPlan& plan,
              killfiles::Killfile killfile, const ssh::ConnectOptions& connect, Follow follow,
              RunReport& report);

}  // namespace dtool::cli
