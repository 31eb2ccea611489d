// SIGINT, SIGTERM and SIGHUP of this process. Whoever runs an event loop hears them there; what
// does not hear them within a second, because it waits in a system call (a stalled terminal, file
// server or lock), is ended all the same, with its children.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <chrono>

namespace dtool::ssh {

/// From now on these signals end this process at once where nobody listens, as by default, and its
/// children with it. A SIGHUP that is ignored (nohup) stays ignored. Called first by
/// main.
void watch_interrupts();

/// As if none had come: for a process that goes on after what was interrupted.
void forget_interrupts();

/// While it lives, somebody is asked a question and nothing is at work: signals end this process at
/// once.
class EndsAtOnce {
 public:
  EndsAtOnce();
  ~EndsAtOnce();
  EndsAtOnce(const EndsAtOnce&) = delete;
  EndsAtOnce& operator=(const EndsAtOnce&) = delete;
};

/// A child that ends with this process, while it lives: `pid`, or the group -`pid`. None for 0.
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

/// Sends all of them TERM, at the same time. Until when they may take for that, in all.
void tell_children_to_end();
std::chrono::steady_clock::time_point end_of_childrens_grace();

/// How the terminal is to be left where this process has no time to do it itself: its settings, and
/// what is written to it (a literal). Null: as it is.
void leave_terminal_with(int fd, const termios* settings, const char* text);

}  // namespace dtool::ssh
