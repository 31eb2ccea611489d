// SPDX-License-Identifier: MIT
#include "ssh/host/session/job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include "ssh/host/child.h"
#include "ssh/host/explaining_line.h"
#include "ssh/host/files.h"
#include "ssh/host/kill.h"
#include "ssh/host/process_table.h"
#include "ssh/host/rank_log.h"
#include "ssh/host/session/log_tail.h"
#include "ssh/wire/run.h"
#include "ssh/wire/words.h"

namespace dtool::host {

namespace {

using namespace std::chrono_literals;

bool is_of_launcher(std::string_view line) {
  constexpr std::array<std::string_view, 6> kBeginnings = {
      "dtool: attempt",        "dtool: rank", kFailurePrefix, "dtool: the run is not supervised",
      "dtool: the time limit", "mpirun: "};
  const auto begins = [line](std::string_view beginning) { return line.starts_with(beginning); };
  return std::ranges::any_of(kBeginnings, begins);
}

/// In the child; only calls that are safe between fork and exec.
[[noreturn]] void become(const std::vector<char*>& arguments, const char* log, Input input) {
  restore_open_files();
  for (const int each : {SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD}) ::signal(each, SIG_DFL);
  unblock_signals();
  if (input == Input::nothing) give_nothing({STDIN_FILENO});
  if (log[0] != '\0') {
    const int out = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (out == -1) ::_exit(1);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
  }
  ::execvp(arguments[0], arguments.data());
  ::_exit(kCannotRun);
}

}  // namespace

void begin_job() {
  const Descriptor end(::open("exit_code.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!end.is_open()) throw std::runtime_error(with_reason("cannot write exit_code.new"));
  write_all(end.get(), "\n\n\n\n");
  const auto self = find_process(::getpid());
  if (!self) throw std::runtime_error("/proc does not show dtool-host itself");
  write_file("process", std::to_string(self->pid) + " " + std::to_string(self->start) + " " +
                            current_boot() + "\n");
}

void record_end(int code) noexcept {
  try {
    if (!exists("exit_code")) write_over_reserved("exit_code", std::to_string(code) + "\n");
  } catch (const std::exception&) {
    // No caller could report it.
  }
}

std::optional<std::chrono::seconds> find_kill_mark() {
  constexpr std::chrono::seconds kWithoutWord{600};
  if (!exists("killed")) return std::nullopt;
  const auto limit = parse_number<std::uint32_t>(read_line("killed"));
  return limit ? std::chrono::seconds(*limit) : kWithoutWord;
}

void end_part(const std::set<pid_t>& spared) {
  constexpr std::chrono::seconds kGrace{3};
  const char* run_id = std::getenv("DTOOL_RUN_ID");
  std::string text;
  try {
    const KillReply reply = end_processes(run_id != nullptr ? run_id : "", kGrace, spared);
    text =
        "ended=" + std::to_string(reply.ended) + "\nforced=" + std::to_string(reply.forced) + "\n";
    for (const std::string& each : reply.left) text += "left=" + each + "\n";
  } catch (const std::exception& error) {
    text = std::string(error.what()) + "\n";
  }
  write_in_place("ended", text);
}

void say_in_log(const std::string& log, const std::string& line) {
  append_to(log, "dtool: " + line + "\n");
}

std::string find_last_line(std::string_view end_of_log) {
  std::string text;
  for (const char each : end_of_log) {
    // A progress bar returns its carriage.
    if (each == '\r' || each == '\n') text += '\n';
    if (each == '\0' || each == '\t') text += ' ';
    if (each >= ' ' && each <= '~') text += each;
  }
  std::string own;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = cut_line(rest);
    if (line.starts_with("dtool: attempt ") && line.ends_with(" begins")) own.clear();
    if (!is_of_launcher(line)) own.append(line).append("\n");
  }
  return explaining_line(own);
}

std::string last_line_of_rank(const std::string& state, int attempt, const std::string& rank) {
  constexpr std::size_t kEndOfLog = 64U << 10U;  // a traceback of several ranks is long
  const auto number = parse_number<int>(rank);
  if (number) {
    const std::string file = rank_log(state, attempt, *number);
    if (!file.empty() && exists(file)) return find_last_line(read_end(file, kEndOfLog));
  }
  const std::string text = read_end(state + "/log", kEndOfLog);
  return find_last_line(read_log_ranks(state).are_marked ? without_marks(text) : text);
}

std::string read_first_failure(const std::string& state, int attempt) {
  const std::string file = state + "/first_failure";
  const std::string line = read_line(file);
  std::string_view rest = line;
  std::string told(line.starts_with(kOwnProcess) ? line : cut_word(rest));
  if (!exists(state + "/torchrun_rank") || !parse_number<int>(told) ||
      !marks_a_victim(last_line_of_rank(state, attempt, told)))
    return told;
  const std::string folder = rank_folder(state);
  for (const std::string& name : list_folder(folder)) {
    const auto rank = parse_number<int>(name.substr(1, name.find('.') - 1));
    if (!rank || folder + "/" + name != rank_log(state, attempt, *rank)) continue;
    const std::string last = last_line_of_rank(state, attempt, std::to_string(*rank));
    if (!is_exception(last) || marks_a_victim(last)) continue;
    told = std::to_string(*rank);
    write_in_place(file, told + "\n");
    break;
  }
  return told;
}

pid_t start_program(const std::vector<std::string>& arguments, const std::string& log,
                    Input input) {
  const std::vector<char*> pointers = as_pointers(arguments);
  const pid_t child = ::fork();
  if (child == -1) throw std::runtime_error(with_reason("no process can be made"));
  if (child == 0) become(pointers, log.c_str(), input);
  return child;
}

std::optional<int> wait_for_child(pid_t child, Time patience) {
  constexpr Time kBetweenLooks = 50ms;
  for (const Time end = time_since_boot() + patience;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return to_exit_code(status);
    if (ended == -1 && errno != EINTR) return kCannotRun;
    if (time_since_boot() >= end) return std::nullopt;
    pause(kBetweenLooks);
  }
}

namespace {

bool is_raised = false;
rlimit before{};

}  // namespace

void raise_open_files() {
  if (is_raised || ::getrlimit(RLIMIT_NOFILE, &before) != 0) return;
  rlimit raised = before;
  raised.rlim_cur = raised.rlim_max;
  is_raised = ::setrlimit(RLIMIT_NOFILE, &raised) == 0;
}

void restore_open_files() {
  if (is_raised) ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace dtool::host
