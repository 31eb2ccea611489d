// SPDX-License-Identifier: MIT
// `dtool status --watch`: shows the status of a run again and again until it has ended.
#pragma once

#include <chrono>

#include "cli/console.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Redraws in place on a terminal; elsewhere prints a block per round. Pauses for `interval`
/// between rounds and keeps the connections. Ends with the run, by `q` (on a terminal) and by
/// Ctrl-C. Returns dtool's exit code.
int watch(Console& console, ssh::Remote& remote, const killfiles::Killfile& killfile,
          std::chrono::milliseconds interval);

}  // namespace dtool::cli
