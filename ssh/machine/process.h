// SPDX-License-Identifier: MIT
// A program on this machine, run inside the event loop.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ssh/machine/interrupts.h"
#include "ssh/machine/reactor.h"

namespace dtool::ssh {

enum class Failure;

/// A child process in its own process group. It inherits nothing but what is named here.
class Process {
 public:
  /// Descriptors for the child; -1 is /dev/null. `extra` appears in the child as descriptor 3.
  struct Descriptors {
    int in = -1;
    int out = -1;
    int err = -1;
    int extra = -1;
  };

  /// How the child stands to terminals. `none` gives it a session of its own, `own` a session whose
  /// terminal is its standard input; it is then told to end by HUP, as by a terminal that closes,
  /// and what it started is not.
  enum class Terminal { shared, none, own };

  struct Program {
    std::vector<std::string> arguments;         ///< the program, found by PATH, and its arguments
    std::vector<std::string> environment = {};  ///< `NAME=value`, added to this process's
    std::string folder = {};                    ///< the folder to start in; empty: this process's
    Terminal terminal = Terminal::shared;
    /// How variables of this process begin that the child does not get.
    std::vector<std::string> left_out = {};
  };

  /// Throws HostError(local_program) if it cannot be started.
  Process(Reactor& reactor, const Program& program, Descriptors descriptors);
  /// Ends the process group if wait() has not returned: TERM, KILL after at most a second (in all,
  /// if the user wants to leave).
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Whether it has ended; waits for that until `deadline` at most.
  asio::awaitable<bool> ends_before(Deadline deadline);

  /// Tells its process group to end, and does not wait.
  void tell_to_end();

  /// Ends what is left of its process group: TERM, at most `grace` for the child, KILL. Blocks.
  void end(std::chrono::milliseconds grace);

  /// The exit code as wait() returns it, if the process has ended.
  std::optional<int> exit_code();

  /// The exit code; 128 + signal if a signal ended it. On a timeout it sends the process group
  /// TERM, a second later KILL, and throws HostError(timed_out).
  asio::awaitable<int> wait(Deadline deadline);

 private:
  enum class Reap { if_it_has_ended, waits };
  bool reap(Reap how = Reap::if_it_has_ended);
  bool tell(int signal) const;

  Reactor& reactor_;
  pid_t pid_ = -1;
  /// The target that is told to end, as kill() has it: the child's group, or it alone.
  pid_t told_ = -1;
  int ending_ = SIGTERM;
  OwnedFd pidfd_;
  EndsWithUs ends_with_us_;
  int exit_code_ = -1;
  bool is_reaped_ = false;
};

/// The file of a program: found by PATH where `name` has no slash. Empty where it is not installed.
std::filesystem::path find_executable(const std::string& name);

/// A pipe; both ends close-on-exec and the named ends non-blocking. make_pipe() throws
/// HostError(local_program).
struct Pipe {
  OwnedFd reader;
  OwnedFd writer;
};
enum class NonBlocking { reader, writer, both };
Pipe make_pipe(NonBlocking end);

/// Two Unix sockets of that type (SOCK_STREAM | SOCK_NONBLOCK, say) that are joined, close-on-exec.
/// Throws HostError with `otherwise`.
std::pair<OwnedFd, OwnedFd> make_sockets(int type, Failure otherwise);

}  // namespace dtool::ssh
