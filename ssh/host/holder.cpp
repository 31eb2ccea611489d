#include "ssh/host/holder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/own_program.h"

namespace dtool::host {
namespace {

/// A process of its own session, without a terminal. The first child ends at once, so that the
/// second belongs to init.
std::string hold_with_nothing(const std::string& state, const std::string& log) {
  const std::string program = own_path();
  const pid_t child = ::fork();
  if (child == -1) return with_reason("no process can be made");
  if (child == 0) {
    ::setsid();
    const pid_t grandchild = ::fork();
    if (grandchild != 0) ::_exit(grandchild == -1 ? 1 : 0);
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
    ::setsid();
    if (::chdir(state.c_str()) == 0)
      ::execl(program.c_str(), program.c_str(), "session", log.c_str(), nullptr);
    ::_exit(1);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  return status == 0 ? "" : "no process can be made";
}

}  // namespace

std::string name_of(Holder holder) {
  switch (holder) {
    case Holder::screen:
      return "screen";
    case Holder::tmux:
      return "tmux";
    case Holder::none:
      return "none";
  }
  return "none";
}

Holder choose_holder() {
  if (is_program("screen")) return Holder::screen;
  return is_program("tmux") ? Holder::tmux : Holder::none;
}

std::string hold_session(Holder holder, const std::string& session, const std::string& state,
                         const std::string& log) {
  if (holder == Holder::none) return hold_with_nothing(state, log);
  std::vector<std::string> words;
  if (holder == Holder::screen) {
    words = {"screen", "-dmS", session, own_path(), "session", log};
  } else {
    // The job has its own server, with a socket in the state folder: it never meets the user's
    // sessions, and ends with the job. Its keys are screen's, so that users who attach need not
    // know which of the two it is.
    ::unsetenv("TMUX");
    words = {"tmux", "-S",     "tmux",     "-f",      "/dev/null",  "new-session", "-d",
             "-s",   "job",    own_path(), "session", log,          ";",           "set-option",
             "-g",   "status", "off",      ";",       "set-option", "-g",          "prefix",
             "C-a",  ";",      "bind-key", "a",       "send-prefix"};
  }
  const ChildResult held = run_program(words, std::chrono::seconds(20), state);
  if (held.ok()) return {};
  return words[0] + " did not start: " + held.out + held.err;
}

}  // namespace dtool::host
