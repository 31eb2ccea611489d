// SPDX-License-Identifier: MIT
// `dtool-host session LOG`: leads a job, in its state folder. It runs `script`, shows the log if
// the session has a terminal, and records the end. If the folder has a file `supervise`, it
// supervises the machine's part of a run, and on machine 0 the whole run.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ssh/host/session/coordinator.h"
#include "ssh/host/session/machine.h"
#include "ssh/host/session/supervision.h"

namespace dtool::host {

/// Sets DTOOL_HOST to this program for the scripts that it starts. Its file may be removed.
void tell_script_this_program();

/// The session's exit code: the script's last one.
int run_session(const std::string& log);

/// How many processes the kernel has ended since boot because it ran out of memory, from
/// /proc/vmstat; nothing where it does not count them.
std::optional<std::uint64_t> out_of_memory_kills(std::string_view counters);

/// The main loop of a session that supervises: the script's end, reports and decisions, and the
/// guard. `viewer`: a child that is spared when the run's processes are ended; -1: none. Returns
/// the session's exit code. Throws std::runtime_error if the session cannot continue.
int run_supervised(const Supervision& settings, const std::string& log, pid_t viewer);

/// `dtool-host visit STATE_FOLDER PROGRAM WORDS...`, of `dtool exec` and `dtool ssh`: runs a
/// program in the place of the job's own. The job's script readies the same environment, but
/// nothing is written into the state folder. The program bears the run's id, so that whatever ends
/// the run's processes here ends it too; and it ends if nobody reads its output any more, or its
/// terminal closes. Returns its exit code. Throws std::runtime_error if nothing has begun there.
int run_visit(const std::vector<std::string>& words);

// The order in which a session acts on what it has heard: supervised_session.cpp does so with
// sockets and processes, the simulation (tests/simulation) with messages. No clock.

/// How long a session may wait for an event. `link`: a machine's way to machine 0, if it has one.
template <class Link>
Time patience_of(const Coordinator* coordinator, const Machine& machine, const Link* link,
                 Time now) {
  using namespace std::chrono_literals;
  const bool is_soon = (coordinator && coordinator->is_judging()) || machine.is_standing_still();
  Time patience = is_soon ? 100ms : 1s;
  if (const auto next_try = link ? link->time_to_next_try(now) : std::nullopt)
    patience = std::min(patience, *next_try);
  return patience;
}

/// Hands on what was heard, and does what is due. `send` brings a decision to the other machines.
template <class Link, class Send>
void take_turn(Coordinator* coordinator, Machine& machine, Link* link,
               std::optional<Decision>& heard, Send send, Time now) {
  if (const auto decision = std::exchange(heard, std::nullopt)) machine.take(*decision);
  // A kill that has begun ends the run on all machines: nothing is decided meanwhile.
  if (coordinator && !machine.is_standing_still()) {
    if (const auto decision = coordinator->decide(now)) {
      send(*decision);
      machine.take(*decision);
    }
  }
  // The machine's state comes before its sign of life: else one that was frozen would say first
  // that all is well, and machine 0 would not wait for the failure that it has to tell.
  machine.turn(now);
  const auto loss = link ? link->turn(now) : std::nullopt;
  if (!loss) return;
  machine.take_loss(*loss);
  machine.turn(now);
}

/// Whether a machine's session that is over may end: all that it has to tell was taken, and machine
/// 0 has heard the last of all others.
template <class Link>
bool has_said_last_words(const Coordinator* coordinator, const Link* link, Time now) {
  if (coordinator) return coordinator->has_all_gone(now);
  return !link || link->is_told() || link->is_refused(now);
}

}  // namespace dtool::host
