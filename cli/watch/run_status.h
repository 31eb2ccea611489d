// SPDX-License-Identifier: MIT
// Asks all machines of a recorded run how they are doing, in one round trip each.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cli/action.h"
#include "cli/host_options.h"
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

// Asks for the states of many recorded runs at once, with one connection and one round trip per
// host, even if several runs are on it: for `dtool list --state`, and for `dtool kill` without a
// run.

/// One machine of one run, both by index.
struct RunPart {
  std::size_t run = 0;
  std::size_t machine = 0;
};

/// Hosts that are reached with the same settings, each once, and the machines of runs on each.
struct HostsOfRuns {
  Targets targets;
  std::vector<std::vector<RunPart>> parts;  ///< one list per host
};

/// `targets`: one per run. Runs with different SSH settings are in different groups, since a Remote
/// has one set of them; usually there is one group.
std::vector<HostsOfRuns> group_hosts(const std::vector<Targets>& targets);

/// One task per host of the group; read_states() reads its answer.
std::vector<ssh::Task> state_tasks(const std::vector<killfiles::Killfile>& runs,
                                   const HostsOfRuns& hosts);

/// Writes the answers of the group's hosts into `states`, which has an entry for each machine of
/// each run. Only the state and its details were asked for.
void read_states(const std::vector<killfiles::Killfile>& runs, const HostsOfRuns& hosts,
                 const std::vector<ssh::HostResult>& results,
                 std::vector<std::vector<MachineStatus>>& states);

/// The hosts' answers.
struct AskedStates {
  std::vector<std::vector<MachineStatus>> states;  ///< one list a run; empty: cannot be asked
  std::vector<ssh::HostResult> results;            ///< one a host
  bool interrupted = false;
};

/// The default of --connect_timeout: the answer is wanted at once, and hosts that are switched off
/// must not hold it back for long.
constexpr double kSecondsForStates = 3;

/// Asks the hosts of all runs. A host that takes longer than 20 s counts as unreachable, such as
/// one whose disk hangs.
AskedStates ask_states(Invocation& invocation, const std::vector<killfiles::Killfile>& runs,
                       HostOptions options);

/// Whether the machine's part is over for good.
bool is_over(const MachineStatus& machine);

/// The state of a machine in a word: `running`, `ended` (well), `failed`, `lost`, `killed`, `not
/// started`, `unreachable`.
std::string state_word(const MachineStatus& machine);

/// The word that all machines share, or the number of machines for each: `2 of 3 running, 1
/// unreachable`.
std::string states_text(const std::vector<MachineStatus>& machines);

}  // namespace dtool::cli
