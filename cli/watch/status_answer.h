// Asks a host after machines of recorded runs, and judges what its answers say of them.
#pragma once

#include <string>
#include <vector>

#include "cli/watch/machine_status.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// A machine of a recorded run that is asked how it is.
struct AskedMachine {
  std::string run_id;
  killfiles::Machine machine;
};

/// Whether more is asked than the state and what belongs to it.
enum class Detail { brief, full };

/// Asks the host of all `machines` after them in one round trip; the answer is read by
/// read_statuses.
ssh::Command status_command(const std::vector<AskedMachine>& machines, Detail detail);

/// What one host answered, in the order in which it was asked.
std::vector<MachineStatus> read_statuses(const std::vector<AskedMachine>& machines,
                                         const ssh::HostResult& result);

}  // namespace dtool::cli
