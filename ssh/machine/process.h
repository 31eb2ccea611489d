// A program on this machine, run inside the event loop.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "ssh/machine/interrupts.h"
#include "ssh/machine/reactor.h"

namespace dtool::ssh {

/// A child process in a process group of its own. Nothing but what is named here is inherited.
class Process {
 public:
  /// Descriptors for the child; -1 is /dev/null. `extra` appears in the child as descriptor 3.
  struct Descriptors {
    int in = -1;
    int out = -1;
    int err = -1;
    int extra = -1;
  };

  /// Whether the child can reach this process's terminal: `none` gives it a session of its own.
  enum class Terminal { shared, none };

  struct Program {
    std::vector<std::string> arguments;         ///< the program, found by PATH, and its arguments
    std::vector<std::string> environment = {};  ///< `NAME=value`, added to this process's
    std::string folder = {};                    ///< to start in; empty: this process's
    Terminal terminal = Terminal::shared;
  };

  /// Throws HostError(local_program) if it cannot be started.
  Process(Reactor& reactor, const Program& program, Descriptors descriptors);
  /// Ends the process group where wait() has not returned: TERM, a second at most (in all
  /// where the user wants to leave), KILL.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Whether it has ended, for which this waits until `deadline` at most.
  asio::awaitable<bool> ends_before(Deadline deadline);

  /// Tells its process group to end, and does not wait.
  void tell_to_end();

  /// Ends what is left of its process group: TERM, `grace` for the child at most, KILL. Waits here.
  void end(std::chrono::milliseconds grace);

  /// What wait() would return, where the process has ended.
  std::optional<int> exit_code();

  /// The exit code, 128 + signal if a signal ended it. Throws HostError(timed_out) after sending
  /// the process group TERM and, a second later, KILL.
  asio::awaitable<int> wait(Deadline deadline);

 private:
  bool reap();

  Reactor& reactor_;
  pid_t pid_ = -1;
  OwnedFd pidfd_;
  EndsWithUs ends_with_us_;
  int exit_code_ = -1;
  bool is_reaped_ = false;
};

/// A pipe; both ends close-on-exec and the named ends non-blocking.
struct Pipe {
  OwnedFd reader;
  OwnedFd writer;
};
enum class NonBlocking { reader, writer, both };
Pipe make_pipe(NonBlocking end);

}  // namespace dtool::ssh
