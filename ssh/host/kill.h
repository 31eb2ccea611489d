// SPDX-License-Identifier: MIT
// Ends a run on this host, and proves that nothing of it is left.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include <sys/types.h>

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
  int calm_ = 0;  ///< in a row
};

}  // namespace dtool::host
