// SPDX-License-Identifier: MIT
#include "ssh/host/session/session.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/rank_log.h"
#include "ssh/host/session/job.h"
#include "ssh/host/session/rank_logs.h"
#include "ssh/host/session/supervised_session.h"
#include "ssh/host/session/supervision.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

void note_signal(int) {}

/// Ctrl-C in an attached session and the loss of its terminal do not end this process, so that the
/// end is recorded; the script gets the signals.
void survive_terminal() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  for (const int each : {SIGINT, SIGHUP, SIGCHLD}) ::sigaction(each, &action, nullptr);
}

/// Writes the log to the terminal as it grows, until this process is ended.
[[noreturn]] void show(const std::string& log) {
  for (const int each : {SIGINT, SIGQUIT}) ::signal(each, SIG_IGN);
  for (const int each : {SIGHUP, SIGCHLD}) ::signal(each, SIG_DFL);
  const Descriptor file(::open(log.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0666));
  try {
    for (;; host::pause(200ms)) {
      struct stat now {};
      ::fstat(file.get(), &now);
      if (::lseek(file.get(), 0, SEEK_CUR) > now.st_size) ::lseek(file.get(), 0, SEEK_SET);
      for (auto bytes = read_some(file.get()); bytes; bytes = read_some(file.get()))
        write_all(STDOUT_FILENO, *bytes);
    }
  } catch (const std::runtime_error&) {
    ::_exit(0);  // the terminal is gone
  }
}

/// Shows the log in this process's terminal, if there is one. It is a separate process, since a
/// terminal that is stopped by Ctrl-S stops every process that writes to it.
class Viewer {
 public:
  explicit Viewer(const std::string& log) {
    if (::isatty(STDOUT_FILENO) != 1) return;
    pid_ = ::fork();
    if (pid_ == 0) show(log);
    if (pid_ == -1) say_in_log(log, with_reason("the log is not shown"));
  }
  ~Viewer() {
    if (pid_ == -1) return;
    ::kill(pid_, SIGTERM);
    wait_for_child(pid_, 1s);
  }
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

/// What an assert says goes into the log: nobody may see the terminal.
void say_errors_in(const std::string& log) {
  const Descriptor file(::open(log.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file.is_open()) ::dup2(file.get(), STDERR_FILENO);
}

int run_once(const std::string& log) {
  const pid_t script = start_program({"bash", "./script"}, log, Input::inherited);
  std::optional<int> ended;
  while (!(ended = wait_for_child(script, 1s))) note_log_time(".");
  const int code = *ended;
  note_log_time(".");
  tell_unmerged(".", log);
  record_end(code);
  return code;
}

}  // namespace

void tell_script_this_program() {
  const std::string program = "/proc/" + std::to_string(::getpid()) + "/exe";
  ::setenv("DTOOL_HOST", program.c_str(), 1);
}

int run_session(const std::string& log) {
  constexpr int kFault = 1;
  tell_script_this_program();
  survive_terminal();
  begin_job();
  say_errors_in(log);
  const Viewer viewer(log);
  try {
    const auto text = read_file("supervise");
    if (!text) return run_once(log);
    return run_supervised(parse_supervision(*text), log, viewer.pid());
  } catch (const std::exception& error) {
    // The terminal may be stopped, or unread.
    say_in_log(log, error.what());
    write_in_place("fault", std::string(error.what()) + "\n");
    record_end(kFault);
    return kFault;
  }
}

}  // namespace dtool::host
