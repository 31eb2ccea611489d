// SPDX-License-Identifier: MIT
// `dtool run --resume RUN`: which earlier runs a run may go on from. earlier_run.h gives what it
// takes over, and earlier_outputs.h brings the outputs.
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/settings.h"
#include "cli/watch/machine_status.h"
#include "ssh/host/files.h"
#include "ssh/silent_hosts.h"

namespace dtool::cli {

/// Why something of a run may still go on, or begin, on a machine that has answered; empty: it has
/// ended there. Pure.
std::string why_not_ended(const std::vector<MachineStatus>& machines);

/// Throws UsageError if a machine of the earlier run is not known to have ended; a machine other
/// than the first that does not answer is told in a note, and added to `silent`. False:
/// interrupted.
bool require_ended(Console& console, const std::string& run_id, const HostOptions& hosts,
                   const UserSettings& users, const std::shared_ptr<ssh::SilentHosts>& silent);

/// Throws UsageError that names the run which goes on from `run_id`, if one does.
void require_not_resumed(const std::string& run_id);

/// While it is held, no other dtool here begins to go on from any run: so two that are to go on
/// from one do not both find that none does. Throws UsageError if it is not free for seconds.
host::Descriptor lock_resuming();

}  // namespace dtool::cli
