// SPDX-License-Identifier: MIT
// Completes the record of a run that has ended: how it ended, its last metrics, its packages. What
// the hosts know of that goes when the run is forgotten.
#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/record/record.h"
#include "cli/watch/machine_status.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Whether nothing more can be learnt: how the run ended, and its packages if they are listed.
bool is_complete(const RunRecord& record);

/// Adds what the machines' states tell. Nothing changes while a machine runs or is silent.
void add_end(const std::vector<MachineStatus>& machines, RunRecord& record);

/// Completes this launcher's record of the run, if it has one that is not complete. A record that
/// cannot be read or written is told in a note.
void note_end(Console& console, const std::string& run_id,
              const std::vector<MachineStatus>& machines);

/// The same, after asking the run's hosts, which `remote` reaches, if there is something to add:
/// the states of the machines that were asked.
std::vector<MachineStatus> ask_for_end(Console& console, ssh::Remote& remote,
                                       const killfiles::Killfile& killfile);

/// Notes in the record that the killfile was deleted, and on which hosts something may be left
/// (empty: nothing is). A record that cannot be read or written is told in a note.
void note_forgotten(Console& console, const std::string& run_id, const std::string& left_on);

}  // namespace dtool::cli
