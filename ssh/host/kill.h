// SPDX-License-Identifier: MIT
// Ends a run on this host, and proves that nothing of it is left.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ssh/wire/run.h"

namespace dtool::host {

/// Marks the run's state folders as killed, so that no start slips past; has a scheduler end what
/// it runs; then ends the members by TERM and, after the grace, by KILL, and looks again. Throws
/// std::runtime_error where the host's processes cannot be looked at: then nothing is claimed.
KillReply kill_run(const KillRequest& request);

/// The same for the processes of a run whose own session goes on: this process, those it descends
/// from, and `spared` with their descendants stay. Nothing is marked.
KillReply end_processes(const std::string& run_id, std::chrono::milliseconds grace,
                        const std::set<pid_t>& spared);

/// How often SIGKILL is sent to a run, with a look after each time. What begins and ends all the
/// time is met by chance: one look without it says little.
class Strikes {
 public:
  /// Whether it is sent once more. `was_restless`: at some look a member ended before it could be
  /// met.
  bool are_due(bool any_lives, bool was_restless) const;
  /// After one: whether nothing lived at its last look, and nothing ended before it could be met.
  void add(bool is_calm);
  /// Whether enough looks in a row were calm.
  bool have_calmed() const;

 private:
  int count_ = 0;
  int calm_ = 0;  ///< the number of calm looks in a row
};

// Finds processes that may be the run's although nothing proves it: the run handed them to a server
// of the user's that was there before (tmux, screen, systemd, docker, podman, at), they hide their
// environment, they begin and end all the time, or only their output and folder are the run's, as a
// person's may be. kill names them and leaves them alone.

/// One line for each server or process: `tmux (pid 12) has 2 processes that began after the run:
/// …`. `began`: the start of the run, in clock ticks since the boot. The processes of the caller's
/// own terminal are left out. `places`: real paths of the run's logs and folders. Throws
/// std::runtime_error if not all processes can be seen.
std::vector<std::string> find_unseen(const std::string& run_id, std::uint64_t began,
                                     const std::vector<std::string>& places);

/// A process that forks and ends all the time, with no sign of a run: at each look another one is
/// there, which `meet` tells once. A look misses it between its fork and its parent's end, so one
/// look is three tries. The last one that was met, if all looks met one. `rest` waits.
std::optional<pid_t> follow_hopper(const std::function<std::optional<pid_t>()>& meet,
                                   const std::function<void(std::chrono::milliseconds)>& rest);

}  // namespace dtool::host
