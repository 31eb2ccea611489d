// SPDX-License-Identifier: MIT
// A job's script and the files of its state folder (the current folder), as its session writes
// them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/child.h"
#include "ssh/host/session/report.h"

namespace dtool::host {

/// Records the leader of the job (`process`), and reserves disk space for the record of its end.
/// Throws std::runtime_error.
void begin_job();

/// Writes `exit_code`, which tells all followers that the job has ended. Never throws, because no
/// caller could report it.
void record_end(int code) noexcept;

/// The most time that dtool kill may take, if it has begun (`killed`).
std::optional<std::chrono::seconds> find_kill_mark();

/// Ends the run's processes here, except this process, its ancestors, and `spared`. Writes the
/// result to the file `ended`.
void end_part(const std::set<pid_t>& spared);

/// Writes a line of dtool's own to the log, if possible.
void say_in_log(const std::string& log, const std::string& line);

/// The explaining_line() of the newest attempt in a log's end, without dtool's own lines about
/// ranks and attempts, and without mpirun's.
std::string find_last_line(std::string_view end_of_log);

/// The same of what a rank wrote: from its own file if its machine has several ranks, else from the
/// machine's log. `rank`: its number, or who else failed.
std::string last_line_of_rank(const std::string& state, int attempt, const std::string& rank);

/// Who failed first on a machine, as its file first_failure says: a rank's number, `mpirun`,
/// kOwnProcess with more words, or nothing. torchrun, if several ranks end at once, may name one
/// that lost another: then the file is corrected by what each of them wrote.
std::string read_first_failure(const std::string& state, int attempt);

inline constexpr std::string_view kOwnProcess = "dtool's own process";

/// The standard input of a program that a session starts.
enum class Input { inherited, nothing };

/// Starts a program in this folder with default signal handling. Its output goes to `log`; if that
/// is empty, to this process's output. Throws std::runtime_error if no process can be made.
pid_t start_program(const std::vector<std::string>& arguments, const std::string& log, Input input);

/// Waits up to `patience` for the end of a child. Returns its exit code, 128 + signal if a signal
/// ended it; nothing while it runs.
std::optional<int> wait_for_child(pid_t child, Time patience);

// The limit of open files. Machine 0's session has a connection to each machine of the run, so it
// raises the limit; its children get the original one.

/// Raises the limit as far as this user may.
void raise_open_files();

/// Restores the original limit. Safe between fork and exec.
void restore_open_files();

}  // namespace dtool::host
