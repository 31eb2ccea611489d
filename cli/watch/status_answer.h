// SPDX-License-Identifier: MIT
// Asks a host about machines of recorded runs, and interprets its answers.
#pragma once

#include <string>
#include <vector>

#include "cli/watch/machine_status.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// A machine of a recorded run to ask about.
struct AskedMachine {
  std::string run_id;
  killfiles::Machine machine;
};

/// Whether to ask for more than the state and its details.
enum class Detail { brief, full };

/// Asks the host of all `machines` about them in one round trip; read_statuses() reads the answer.
ssh::Command status_command(const std::vector<AskedMachine>& machines, Detail detail);

/// The answers of one host, in the order of the questions.
std::vector<MachineStatus> read_statuses(const std::vector<AskedMachine>& machines,
                                         const ssh::HostResult& result);

}  // namespace dtool::cli
