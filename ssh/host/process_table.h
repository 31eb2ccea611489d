// SPDX-License-Identifier: MIT
// The processes of this host, from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dtool::host {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;  ///< a session in the kernel's sense: its leader's pid
  char state = '?';   ///< R, S, D, Z, … of /proc/PID/stat
  int threads = 0;
  /// The start time in clock ticks since boot; pid and start together identify a process.
  std::uint64_t start = 0;
  std::uint64_t cpu_ticks = 0;
  std::uint64_t resident_pages = 0;
  std::string name;  ///< the name has at most 15 characters; may hold any bytes

  /// Whether it has ended. A process whose main thread alone has ended has not.
  bool is_dead() const { return (state == 'Z' || state == 'X') && threads < 2; }
};

/// One line of /proc/PID/stat; nothing if it is malformed.
std::optional<Process> parse_stat(std::string_view text);

/// That process; nothing if it has ended.
std::optional<Process> find_process(pid_t pid);
/// The same; nothing if another process has the pid now.
std::optional<Process> find_process(pid_t pid, std::uint64_t start);

/// All processes. Throws std::runtime_error if they cannot be read: this process itself is missing,
/// or descriptors or memory have run out.
std::vector<Process> read_processes();

/// Only the pids. Throws like read_processes().
std::vector<pid_t> list_pids();

/// The value of DTOOL_RUN_ID in a process's environment. Any process may have the variable without
/// a value, and is of no run.
struct RunMark {
  enum class Look { seen, hidden, gone } look = Look::gone;  ///< hidden: not readable
  std::optional<std::string> run_id = {};
};
RunMark read_run_mark(pid_t pid);

/// The user who started it; nothing if it has ended. /proc/PID belongs to root if the program may
/// not be traced.
std::optional<uid_t> user_of(pid_t pid);

/// The runs of which this user has processes, such as a visitor's; see read_run_mark.
std::set<std::string> marked_runs();

/// Its command line for people: at most `most` printable characters, on one line.
std::string command_of(pid_t pid, std::size_t most);

/// Clock ticks per second, the unit of `start`.
std::uint64_t ticks_per_second();

/// Seconds since boot; setting the clock does not change it.
double seconds_since_boot();

/// The kernel's id of this boot.
std::string boot_id();

/// Begins what current_boot() makes of the start time of process 1.
inline constexpr std::string_view kBootOfInit = "init-";

/// The kernel's boot id. Where that cannot be read: `init-` and the start time of process 1, of
/// which another value proves another boot, or another start of a container. Empty if both are
/// hidden.
std::string current_boot();

// Who this host is, so that a run is not looked for on another machine with the same name.

/// Four words: machine id, host name, boot id, number of the process namespace; `-` for an unknown
/// one. killfiles/killfile.h compares them.
std::string identify_host();

}  // namespace dtool::host
