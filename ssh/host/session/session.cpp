// SPDX-License-Identifier: MIT
#include "ssh/host/session/session.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"
#include "ssh/host/session/job.h"
#include "ssh/host/session/rank_logs.h"
#include "ssh/host/session/supervision.h"
#include "ssh/host/versions.h"

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

namespace {

/// A bash program that sources the script `$0` with the attempt's numbers as its words. For mpirun
/// the script is `./rank`, whose first two words are a rank's numbers: a visit has none.
constexpr const char* kVisit =
    "read -ra numbers <<< \"$1\"; visit=(\"${@:2}\"); set -- \"${numbers[@]}\"; "
    "[ \"$0\" != ./rank ] || set -- '' '' \"$@\"; . \"$0\"";

bool has_no_reader() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

/// Ends all processes of that session (in the kernel's sense), within a second.
void end_session(pid_t leader) {
  constexpr Time kForTerm = 700ms, kInAll = 900ms, kPause = 50ms;
  for (Time waited{0}; waited <= kInAll; waited += kPause) {
    bool is_over = true;
    for (const Process& each : read_processes()) {
      if (each.session != leader || each.is_dead()) continue;
      is_over = false;
      if (waited == Time(0)) ::kill(each.pid, SIGTERM);
      if (waited >= kForTerm) ::kill(each.pid, SIGKILL);
    }
    if (is_over) return;
    host::pause(kPause);
  }
}

int follow_visit(const std::vector<std::string>& program) {
  const sigset_t heard = block_signals({SIGCHLD, SIGTERM, SIGINT, SIGHUP});
  const pid_t child = start_program(program, {}, Input::inherited);
  for (;;) {
    if (const auto code = wait_for_child(child, 0ms)) return *code;
    constexpr timespec kBetweenLooks{0, 200'000'000};
    const int signal = ::sigtimedwait(&heard, nullptr, &kBetweenLooks);
    if ((signal > 0 && signal != SIGCHLD) || has_no_reader()) end_session(child);
  }
}

}  // namespace

int run_visit(const std::vector<std::string>& words) {
  const std::string state = expand_home(words.front());
  if (::chdir(state.c_str()) != 0)
    throw std::runtime_error(with_reason("the run's folder " + state + " cannot be entered"));
  const std::string numbers = read_line("numbers");
  if (numbers.empty())
    throw std::runtime_error("nothing of the run has begun in " + state +
                             ", or an older dtool started it");
  const std::string run = folder_of(state);
  ::setenv("DTOOL_RUN_ID", run.substr(run.rfind('/') + 1).c_str(), 1);
  ::setenv("DTOOL_HOST", own_path().c_str(), 1);
  const bool has_terminal = ::isatty(STDIN_FILENO) == 1;
  std::vector<std::string> program;
  if (!has_terminal) program.emplace_back("setsid");
  program.insert(program.end(),
                 {"bash", "-c", kVisit, exists("rank") ? "./rank" : "./script", numbers});
  program.insert(program.end(), words.begin() + 1, words.end());
  if (!has_terminal) return follow_visit(program);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvp(program[0].c_str(), as_pointers(program).data());
  throw std::runtime_error(with_reason("bash cannot be started"));
}

}  // namespace dtool::host
