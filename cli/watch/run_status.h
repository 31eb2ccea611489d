// SPDX-License-Identifier: MIT
// Asks all machines of a recorded run how they are doing, in one round trip each.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "cli/watch/machine_status.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Is called with each machine's answer as it arrives.
using OnStatus =
    std::function<void(std::size_t machine, const ssh::HostResult&, const MachineStatus&)>;

/// Asks the machines `which` (indexes in the killfile), each host once; the remote's hosts are the
/// run's machines in their order. A host that takes longer than `patience` counts as unreachable:
/// one with a hanging disk never answers.
std::vector<MachineStatus> ask_machines(ssh::Remote& remote, const killfiles::Killfile& killfile,
                                        const std::vector<std::size_t>& which,
                                        const OnStatus& on_status, std::chrono::seconds patience,
                                        ssh::Follows follows = ssh::Follows::nothing);

/// The indexes of all machines.
std::vector<std::size_t> all_machines(const killfiles::Killfile& killfile);

/// Whether the run cannot change any more: no machine runs, and each has answered.
bool has_ended(const std::vector<MachineStatus>& machines);

/// kAllWell if all machines run or ended with 0, else kSomeFailed.
int exit_code_of(const std::vector<MachineStatus>& machines);

/// How often the run was started again.
int attempt_of(const std::vector<MachineStatus>& machines);

/// `running`, `ended`, `failed`: the state of the whole run.
std::string_view state_of_run(const std::vector<MachineStatus>& machines);

}  // namespace dtool::cli
