// Asks after many recorded runs at once, one connection and one round trip a host, however many of
// the runs are on it: for `dtool list --state`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/host_options.h"
#include "cli/watch/machine_status.h"
#include "killfiles/killfile.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// A machine of one of several runs, both by their place.
struct RunPart {
  std::size_t run = 0;
  std::size_t machine = 0;
};

/// Hosts that are reached alike, each once, and which machines of which runs each of them is.
struct HostsOfRuns {
  Targets targets;
  std::vector<std::vector<RunPart>> parts;  ///< one list a host
};

/// `targets`: one for each of the runs. Runs that were started with other SSH settings make another
/// group, since a Remote has one set of them; most often there is one group.
std::vector<HostsOfRuns> group_hosts(const std::vector<Targets>& targets);

/// One task a host of the group; its answer is read by read_states.
std::vector<ssh::Task> state_tasks(const std::vector<killfiles::Killfile>& runs,
                                   const HostsOfRuns& hosts);

/// Writes what the group's hosts answered into `states`, which has a place for each machine of each
/// run. Of a machine, the state and what belongs to it alone were asked.
void read_states(const std::vector<killfiles::Killfile>& runs, const HostsOfRuns& hosts,
                 const std::vector<ssh::HostResult>& results,
                 std::vector<std::vector<MachineStatus>>& states);

/// What became of a machine, in a word: `running`, `ended` (well), `failed`, `lost`, `killed`,
/// `not started`, `unreachable`.
std::string state_word(const MachineStatus& machine);

/// The word of all machines, or how many there are of each: `2 of 3 running, 1 unreachable`.
std::string states_text(const std::vector<MachineStatus>& machines);

}  // namespace dtool::cli
