// A job's script and the files of its state folder, which is the current folder, as its session
// writes them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/host/report.h"

namespace dtool::host {

/// Says who leads the job (`process`), and makes room on the disk for its end before there can be
/// too little. Throws std::runtime_error.
void begin_job();

/// Writes `exit_code`, by which all who follow the job know that it has ended. Never throws: there
/// is nobody to tell.
void record_end(int code) noexcept;

/// How long dtool kill may take at most, where it has begun (`killed`).
std::optional<std::chrono::seconds> find_kill_mark();

/// Ends what the run has here, but for this process, those that it descends from, and `spared`.
/// What came of it goes to the file `ended`.
void end_part(const std::set<pid_t>& spared);

/// A line of dtool's own in the log; nothing if it cannot be written.
void say_in_log(const std::string& log, const std::string& line);

/// The last line of the newest attempt in a log's end that is neither dtool's own on ranks and
/// attempts, nor mpirun's.
std::string find_last_line(std::string_view end_of_log);

/// What a program that a session starts reads.
enum class Input { inherited, nothing };
/// Whether it is to get Ctrl-C and the loss of the terminal.
enum class Interrupts { heard, ignored };

/// Starts a program in this folder, with the signals as they are by default; `log`: its output goes
/// there; empty: where this process's goes. Throws std::runtime_error if no process can be made.
pid_t start_program(const std::vector<std::string>& arguments, const std::string& log, Input input,
                    Interrupts interrupts);

/// Waits up to `patience` for the end of a child. Its exit code, 128 + signal if one ended it;
/// nothing while it runs.
std::optional<int> wait_for_child(pid_t child, Time patience);
/// The same, however long it runs.
int wait_for_child(pid_t child);

}  // namespace dtool::host
