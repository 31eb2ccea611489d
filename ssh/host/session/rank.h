// SPDX-License-Identifier: MIT
// The processes of a run on its machines: one that mpirun or a scheduler starts (`dtool-host
// rank`), and all of one machine (`dtool-host ranks`).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/session/report.h"

namespace dtool::host {

/// Runs the script `rank` of the run, which readies the environment and becomes the program.
/// Hands TERM, INT and USR1 on to the program, records its end, and returns its exit code. The
/// first of `words` tells who looks after the process:
///
/// - `machine`: the session of its machine. Then come the machine's state folder (the current
///   folder), the rank, the local rank, the number of the machine's processes, whether the process
///   is torchrun, the attempt, and the places of the machines that take part. The script gets what
///   follows the folder, without the number of processes and torchrun.
/// - `job`: a scheduler's job. Then come the run's folder, the attempt, rank 0's address and port,
///   the number of the job in its array, the place of its first machine, whether the process is
///   torchrun, `words` or `variables`, and seven numbers of the process: machines, machine, rank,
///   local rank, world size, processes (of every machine, or a list of each machine's as below),
///   and the machine's name. After `variables` these are the names of the environment variables
///   that hold them. After `words` signals come as words too, on standard input. The script gets
///   the folder up to the array number, the machine's place in the run, and the seven numbers.
///
/// Whether it is torchrun is `yes` or `no`: torchrun starts the ranks of its machine by itself, and
/// the log has no rank's name.
///
/// Throws std::runtime_error if a word is missing or not a number.
int run_rank(const std::vector<std::string>& words);

/// `4,1(x2)` (four processes on the first machine, one on each of the next two) as `4 1 1`; empty
/// if the text has another form.
std::vector<int> parse_tasks_per_node(std::string_view text);

/// What a job's script executes when everything is prepared (cli/plan/scripts/launch.sh). Starts a
/// process for each local rank, passes TERM, INT and USR1 on to them, and waits. `words`:
/// state folder, attempt, place of this machine, its first rank, the number of processes, what they
/// are told of each other (env, never, or independent: then a failure ends no other), whether
/// {rank} and {local_rank} are replaced in the program's words (yes or no), and the program with
/// its arguments. The first process that fails is recorded in the file first_failure
/// and in the log. If a session supervises, it then ends the others; else they are ended here:
/// TERM, and 5 s later KILL. Returns the exit code of the first failure, 128 + signal if a signal
/// ended it. Throws std::runtime_error.
int run_ranks(const std::vector<std::string>& words);

// The processes that mpirun starts on one machine: `dtool-host keep`, which a job's script executes
// at its end under `--launcher mpi` (cli/plan/scripts/keep_ranks.sh).

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
