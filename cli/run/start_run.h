// SPDX-License-Identifier: MIT
// Starts a run whose plan is complete: first the killfile, then the sessions. Follows the run if
// wanted.
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/engines/engine.h"
#include "cli/plan/plan.h"
#include "cli/run/run_report.h"
#include "killfiles/killfile.h"
#include "ssh/fanout/fleet.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Whether `dtool run` stays until the run has ended: as --follow asks, or unasked, which it says.
enum class Follow { no, yes, unasked };

/// Writes the killfile, which names every session that may come to exist.
killfiles::Killfile write_killfile(const RunPlan& plan, const ssh::ConnectOptions& connect);

/// Starts the engine's jobs; if one does not start, ends the others again. Returns the exit code:
/// that of the whole run if it is followed.
int start_run(Console& console, ssh::Remote& remote, const Engine& engine, const RunPlan& plan,
              killfiles::Killfile killfile, const ssh::ConnectOptions& connect, Follow follow,
              const std::string& record, RunReport& report);

}  // namespace dtool::cli
