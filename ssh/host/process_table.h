// The processes of this host as /proc shows them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtool::host {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;  ///< in the kernel's sense: the pid of its leader
  char state = '?';   ///< R, S, D, Z, … of /proc/PID/stat
  int threads = 0;
  std::uint64_t start = 0;  ///< in clock ticks since the boot; with the pid it names a process
  std::uint64_t cpu_ticks = 0;
  std::uint64_t resident_pages = 0;
  std::string name;  ///< at most 15 characters; may hold anything

  /// Whether it has ended. Where only the main thread has, it has not.
  bool is_dead() const { return (state == 'Z' || state == 'X') && threads < 2; }
};

/// One line of /proc/PID/stat; nothing if it is none.
std::optional<Process> parse_stat(std::string_view text);

/// That process; nothing if it is gone.
std::optional<Process> find_process(pid_t pid);
/// The same; nothing if another process has its pid now.
std::optional<Process> find_process(pid_t pid, std::uint64_t start);

/// All that are there. Throws std::runtime_error if they cannot be looked at: this process
/// itself is not among them, or descriptors or memory have run out.
std::vector<Process> read_processes();

/// The pids alone. Throws like read_processes().
std::vector<pid_t> list_pids();

/// What DTOOL_RUN_ID is in a process's environment.
struct RunMark {
  enum class Look { seen, hidden, gone } look = Look::gone;  ///< hidden: it may not be read
  std::optional<std::string> run_id = {};
};
RunMark read_run_mark(pid_t pid);

/// The user who started it; nothing if it is gone. The owner of /proc/PID is root where a
/// program may not be traced.
std::optional<uid_t> user_of(pid_t pid);

/// Its arguments for people: one line of printable characters, at most `most` of them.
std::string command_of(pid_t pid, std::size_t most);

/// Clock ticks a second, as `start` counts them.
std::uint64_t ticks_per_second();

/// Seconds since the boot; a clock that is set does not change it.
double seconds_since_boot();

/// The kernel's id of this boot.
std::string boot_id();

}  // namespace dtool::host
