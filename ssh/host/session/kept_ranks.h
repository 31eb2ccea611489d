// SPDX-License-Identifier: MIT
// The processes that mpirun starts on one machine: `dtool-host keep`, which a job's script executes
// at its end under `--launcher mpi` (cli/plan/scripts/keep_ranks.sh).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/session/report.h"

namespace dtool::host {

/// Waits for the processes of this machine and ends as they do. `words`: state folder, attempt,
/// this machine's first rank, the number of its processes, and mpirun's pid, a child of this
/// process (0: mpirun runs on another machine). Each process leaves files ranks/ATTEMPT.LOCAL_RANK
/// in the state folder (ssh/host/session/rank.h): its pid and start time; with .program the pid of
/// its program; with .code its exit code; with .told a mark if mpirun told it to end. The first
/// failure is recorded in first_failure. If no session supervises, the machine's other processes
/// are ended: TERM, and 5 s later KILL. Throws std::runtime_error.
int keep_ranks(const std::vector<std::string>& words);

struct FailedMpirun {
  int code;
  Time at;  ///< the time when that was seen
};

/// What is known of a machine's processes while none of them has failed by itself.
struct KeptRanksSeen {
  Time kept_since;
  int waiting = 0;  ///< how many have not ended
  int begun = 0;    ///< how many ever began
  /// The time since when all have ended, some because mpirun told them to.
  std::optional<Time> told_at;
  bool has_mpirun = false;  ///< it runs on this machine, and goes on
  std::optional<FailedMpirun> failed_mpirun;
};

struct KeptEnd {
  int code = 0;
  bool is_mpiruns = false;          ///< the cause is what mpirun said
  std::string_view complaint = {};  ///< a sentence for standard error; or empty

  bool operator==(const KeptEnd&) const = default;
};

/// How keep_ranks() ends; nothing while there is something to wait for. Pure.
std::optional<KeptEnd> find_kept_end(const KeptRanksSeen& seen, Time now);

/// The first meaningful words of mpirun's output, and the host that it lost, if any.
std::string words_of_mpirun(std::string_view said);

}  // namespace dtool::host
