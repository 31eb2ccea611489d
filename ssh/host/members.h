// SPDX-License-Identifier: MIT
// What belongs to a run on this host: the one definition, for kill, status and the sessions that
// end a failed attempt.
//
// A process belongs to a run if it is this user's and bears the run's id in its environment; if it
// runs in a session (in the kernel's sense) of one of the run's jobs; if it did either at an
// earlier look; or if its parent or its session's leader belongs to the run. The id alone would
// miss programs that rewrite their environment (setproctitle does), and parents alone would miss
// daemons. A process that bears another run's id belongs to that run, and so do its children.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/process_table.h"

namespace dtool::host {

/// How a run is known on this host.
struct RunTraces {
  std::string run_id;  ///< empty: its sessions alone
  /// The leaders of the jobs' sessions, with their start times.
  std::map<pid_t, std::uint64_t> leaders;
  std::set<pid_t> seeds;   ///< processes that belong to it for another reason
  std::set<pid_t> spared;  ///< processes that are left out, with all descendants
};

struct Member {
  pid_t pid = 0;
  std::uint64_t start = 0;
  uid_t user = 0;
  std::uint64_t cpu_ticks = 0;
  std::uint64_t resident_pages = 0;
};

/// Sends it the signal, unless it has ended and its pid was given to another process.
void send_to(const Member& member, int signal);

/// What one look finds.
struct Members {
  std::vector<Member> living;
  std::vector<pid_t> callers;  ///< members that this process descends from, the nearest first; they
                               ///< are not among the living
  bool ended_meanwhile = false;  ///< one bore the run's id and ended during the look: there may be
                                 ///< more, which begin and end faster than they are found
};

/// What /proc shows, taken once: the environments first and the processes after them, so that a
/// child that is born in between counts.
struct Sight {
  std::vector<Process> processes;
  std::map<pid_t, RunMark> marks;
  std::map<pid_t, uid_t> users;  ///< the users of the processes that bear a run's id
};

/// A process that begins meanwhile is seen, too. `on_mark` is told of each that bears a run's id at
/// once, while it is surely there. Throws std::runtime_error where not everything can be seen.
Sight look_around(
    const std::function<void(pid_t, const std::string& run_id, uid_t)>& on_mark = nullptr);

/// Looks again and again at the same run, and remembers which processes it has met.
class MemberFinder {
 public:
  explicit MemberFinder(RunTraces traces) : traces_(std::move(traces)) {}

  RunTraces& traces() { return traces_; }
  const RunTraces& traces() const { return traces_; }
  /// Throws std::runtime_error where not everything can be seen: then nothing may be claimed.
  Members look();
  /// The same, and each process of this user's that bears the run's id gets SIGKILL when it is met.
  Members strike();
  /// The same from a sight that was taken already.
  Members look(const Sight& sight);
  /// How many different processes belonged to the run at any look.
  std::size_t count_seen() const { return seen_.size(); }

 private:
  RunTraces traces_;
  std::set<std::pair<pid_t, std::uint64_t>> seen_;
};

// A job's state folder, `~/.dtool/runs/RUN/MACHINE`, as dtool-host reads it. screen_job.h describes
// its files.

/// Whether a process was started since the host was booted. Containers and hardened hosts may hide
/// what tells it: then nothing proves a reboot.
enum class Boot { unknown, this_one, earlier };

/// The leader of a job's session.
struct Leader {
  pid_t pid = 0;
  std::uint64_t start = 0;  ///< the same start time as in Process
  Boot boot = Boot::unknown;
};

struct JobFiles {
  std::optional<Leader> leader;  ///< nothing: the job was not started
  std::string holder;            ///< program that holds its terminal: screen, tmux, none; or empty
};

JobFiles read_job_files(const std::string& folder);

/// Reads `PID START BOOT` from the file `process`. `boot` is the current boot, as current_boot()
/// names it.
std::optional<Leader> parse_leader(std::string_view line, std::string_view boot);

/// The leader's process; nothing if it has ended.
std::optional<Process> find_leader(const Leader& leader);

/// Adds the leader's session to the traces of a run, unless the kernel has reused the pid (and so
/// the session number).
void add_leader(const Leader& leader, RunTraces& traces);

}  // namespace dtool::host
