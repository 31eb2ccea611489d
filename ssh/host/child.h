// SPDX-License-Identifier: MIT
// Programs that dtool-host runs briefly: screen, a scheduler's own commands.
#pragma once

#include <signal.h>

#include <chrono>
#include <initializer_list>
#include <string>
#include <vector>

#include <sys/types.h>

#include "ssh/host/files.h"

namespace dtool::host {

/// Arguments as execvp takes them: pointers into the strings, and a null pointer.
std::vector<char*> as_pointers(const std::vector<std::string>& arguments);

/// Exit codes, as shells have them.
inline constexpr int kCannotRun = 127;
inline constexpr int kKilled = 137;  ///< 128 + SIGKILL

/// The exit code in waitpid's status; 128 + signal if a signal ended the process.
int to_exit_code(int status);

/// The file of a program in PATH; empty: there is none. A name with a slash is a file.
std::string find_program(const std::string& name);
inline bool is_program(const std::string& name) {
  return !find_program(name).empty();
}

/// The most that is kept of each stream of a program.
inline constexpr std::size_t kMostOutput = 1U << 20U;

struct ChildResult {
  bool is_missing = false;  ///< there is no such program
  bool timed_out = false;   ///< it was ended by KILL
  int exit_code = -1;       ///< 128 + signal if a signal ended it
  std::string out;          ///< standard output; its first kMostOutput bytes
  std::string err;          ///< standard error, likewise
  std::string fault;        ///< the fault of try_program: why no process could be made

  bool ok() const { return exit_code == 0; }
};

/// The variables that programs started here get, each `NAME=value`.
std::vector<std::string> own_environment();
/// Makes these all that there are.
void set_environment(const std::vector<std::string>& variables);

/// What a program does when the thread that runs it has gone.
enum class Orphan { goes_on, ends };

/// Waits for the end of a child. Returns its exit code; kCannotRun if it is no child.
int wait_for_child(pid_t child);

/// Blocks these signals, so that they can be waited for. Returns the set of them.
sigset_t block_signals(std::initializer_list<int> signals);

// For a child between fork and exec.

/// No signal is blocked any more.
void unblock_signals();
/// Makes these streams lead to /dev/null.
void give_nothing(std::initializer_list<int> streams);

/// In a child that was just made: it ends by KILL when `parent`, which made it, does.
void end_with(pid_t parent);

/// Runs a program to its end, without input, in `folder` if one is given. Throws std::runtime_error
/// if no process can be made.
ChildResult run_program(const std::vector<std::string>& arguments,
                        std::chrono::milliseconds timeout, const std::string& folder = {},
                        Orphan orphan = Orphan::goes_on);

/// The same for work that must go on where a host is at its limit of processes.
ChildResult try_program(const std::vector<std::string>& arguments,
                        std::chrono::milliseconds timeout, const std::string& folder = {});

/// A program that runs beside this one, without input. The destructor ends it by KILL if it still
/// runs.
class Child {
 public:
  /// Throws std::runtime_error if no process can be made.
  Child(const std::vector<std::string>& arguments, const std::string& folder);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool is_running();
  /// Its output, once it has ended.
  std::string output();

 private:
  pid_t pid_ = -1;
  Descriptor out_;
};

/// Starts a program in a kernel session of its own, without a terminal and a parent. It has `input`
/// as its standard input, or nothing if that is closed, and no output; if a run is named, it bears
/// the run's id. Returns why that failed, or an empty text.
std::string start_detached(const std::vector<std::string>& arguments, const std::string& folder,
                           const Descriptor& input, const std::string& run_id = {});

void pause(std::chrono::milliseconds duration);

}  // namespace dtool::host
