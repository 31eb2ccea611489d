// SPDX-License-Identifier: MIT
// SIGINT, SIGTERM and SIGHUP of this process. A running event loop receives them. If the process
// does not react within a second (to the first SIGINT: three), because it waits in a system call (a
// stalled terminal, file server or lock), it is ended all the same, with its children.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <chrono>

namespace dtool::ssh {

/// From now on these signals end this process and its children at once unless a listener exists, as
/// by default. An ignored SIGHUP (nohup) stays ignored. main calls it first.
void watch_interrupts();

/// Whether more than one Ctrl-C came, or another signal: this process is to end at once.
bool is_to_leave();

/// Forgets earlier signals, for a process that goes on after the interrupted work.
void forget_interrupts();

/// While it lives, the user is asked a question and nothing else runs: signals end this process at
/// once.
class EndsAtOnce {
 public:
  EndsAtOnce();
  ~EndsAtOnce();
  EndsAtOnce(const EndsAtOnce&) = delete;
  EndsAtOnce& operator=(const EndsAtOnce&) = delete;
};

/// While it lives, a child ends with this process: `pid`, or the group -`pid`. 0: no child.
class EndsWithUs {
 public:
  EndsWithUs() = default;
  explicit EndsWithUs(pid_t pid);
  EndsWithUs(EndsWithUs&& other) noexcept;
  EndsWithUs& operator=(EndsWithUs&& other) noexcept;
  ~EndsWithUs();

 private:
  int place_ = -1;
};

/// Sends TERM to all of them at once. Returns the time by which they must have ended.
void tell_children_to_end();
std::chrono::steady_clock::time_point end_of_childrens_grace();

/// The state in which to leave the terminal if this process has no time to do it itself: its
/// settings, and a text to write (a literal). Null: unchanged.
void leave_terminal_with(int fd, const termios* settings, const char* text);

}  // namespace dtool::ssh
