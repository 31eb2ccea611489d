// SPDX-License-Identifier: MIT
#include "ssh/host/session/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "killfiles/channel/channel.h"
#include "ssh/host/child.h"
#include "ssh/host/session/job.h"
#include "ssh/host/session/report_link.h"
#include "ssh/host/session/supervision.h"
#include "ssh/wire/message.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

// A session writes this before it ends properly, in place of a report.
constexpr std::string_view kFarewell = "farewell";

/// The newest of what the session has said, until its end of the pipe is closed. Each is one write,
/// below what a pipe takes at once, and one read: the pipe is a packet pipe.
std::string hear_session() {
  std::string newest;
  std::string piece(4096, '\0');
  for (;;) {
    const ssize_t size = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return newest;
    newest.assign(piece, 0, static_cast<std::size_t>(size));
  }
}

/// Until machine 0 has taken it, or is gone itself.
void tell_machine_0(ReportLink& link, Watch& watch, const Report& report, Time patience) {
  sigset_t mask;
  ::sigemptyset(&mask);
  Time now = time_since_boot();
  const Time end = now + patience;
  for (link.tell(report, now); !link.is_told() && now < end; now = time_since_boot()) {
    link.turn(now);
    if (link.is_refused(now)) return;
    for (const int each : watch.wait(100ms, mask)) link.take(each, time_since_boot());
  }
}

/// If dtool kill has begun, it will end this process, too. A kill that was cut off is not waited
/// for longer than it may take.
void give_way_to_kill() {
  if (const auto limit = find_kill_mark()) pause(*limit);
}

void act_for_session(const Supervision& settings, const Report& report) {
  const auto token = read_token();
  if (settings.place == 0 || !token) {
    end_part({::getpid()});
    return;
  }
  Watch watch;
  ReportLink link(settings, *token, watch, time_since_boot());
  const GuardsWords words = words_of_guard(settings.place, report);
  if (words.failure) tell_machine_0(link, watch, *words.failure, kForGuardsFailure);
  end_part({::getpid()});
  tell_machine_0(link, watch, words.last, kForGuardsLastWords);
}

}  // namespace

Guard::Guard() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_DIRECT | O_NONBLOCK) != 0) return;
  Descriptor reader(ends[0]);
  pipe_ = Descriptor(ends[1]);
  ::fcntl(reader.get(), F_SETFL, O_RDONLY | O_DIRECT);
  pid_ = ::fork();
  if (pid_ != 0) return;
  // Only calls that are safe between fork and exec.
  for (const int each : {SIGINT, SIGHUP, SIGQUIT}) ::signal(each, SIG_IGN);
  unblock_signals();
  ::dup2(reader.get(), STDIN_FILENO);
  give_nothing({STDOUT_FILENO, STDERR_FILENO});
  ::execl("/proc/self/exe", "dtool-host", "guard", static_cast<char*>(nullptr));
  ::_exit(1);
}

void Guard::dismiss() {
  if (pid_ == -1) return;
  [[maybe_unused]] const ssize_t size = ::write(pipe_.get(), kFarewell.data(), kFarewell.size());
  pipe_ = Descriptor();
  wait_for_child(pid_, 1s);
}

void Guard::tell(const Report& report) {
  const std::string bytes = to_bytes(report);
  [[maybe_unused]] const ssize_t size = ::write(pipe_.get(), bytes.data(), bytes.size());
}

bool Guard::is_alive() {
  if (pid_ != -1 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ != -1;
}

GuardsWords words_of_guard(int place, Report report) {
  const bool was_running = report.standing == Standing::running;
  if (was_running || report.standing == Standing::stopped) {
    report.code = kKilled;
    report.text = "the session on machine " + std::to_string(place) + " is gone: it was killed";
  }
  if (was_running) report.standing = Standing::failed;
  GuardsWords words;
  if (has_failed(report.standing)) words.failure = report;
  words.last = report;
  words.last.standing = Standing::gone;
  return words;
}

int run_guard() {
  const Supervision settings = parse_supervision(read_file("supervise").value_or(""));
  const std::string last_words = hear_session();
  if (last_words == kFarewell) return 0;
  // Machine 0's session may have recorded its end already, and lived on to hear the others.
  if (settings.place == 0 && exists("exit_code")) return 0;
  give_way_to_kill();
  // It may have died before its first word.
  act_for_session(settings, last_words.empty() ? Report{} : parse_report(last_words));
  return 0;
}

}  // namespace dtool::host
