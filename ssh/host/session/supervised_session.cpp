// SPDX-License-Identifier: MIT
// The session that supervises its machine's part of a run, with sockets and processes.
#include "ssh/host/session/session.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/rank_log.h"
#include "ssh/host/session/coordinator.h"
#include "ssh/host/session/guard.h"
#include "ssh/host/session/job.h"
#include "ssh/host/session/last_words.h"
#include "ssh/host/session/log_tail.h"
#include "ssh/host/session/machine.h"
#include "ssh/host/session/rank_logs.h"
#include "ssh/host/session/report_link.h"
#include "ssh/host/session/report_port.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

constexpr int kNotExecutable = 126;
constexpr Time kForLastWords = 15s;  // the time for the last report to be told, or to be heard
constexpr Time kBetweenLooks = 1s;   // the time between looks at the log, the guard and the port

std::string first_word(const std::string& file) {
  const std::string line = read_line(file);
  std::string_view rest = line;
  return std::string(cut_word(rest));
}

/// The connections of this machine's session: machine 0's to all others, another's to machine 0.
struct Reports {
  std::optional<ReportPort> port;
  std::optional<ReportLink> link;
};

class SupervisedSession : public Effects {
 public:
  SupervisedSession(const Supervision& settings, std::string log, pid_t viewer);
  int run();

  bool start_script(int attempt, const std::vector<int>& places) override;
  std::optional<int> wait_for_script(Time patience) override;
  void end_processes() override;
  std::optional<std::chrono::seconds> find_kill() override { return find_kill_mark(); }
  std::string read_first_failure() override { return host::read_first_failure(".", attempt_); }
  std::string read_last_words(int attempt, int rank) override {
    return host::read_last_words(last_words_file(attempt, rank));
  }
  std::string read_stopped_rank() override { return first_word("stopped_rank"); }
  std::string last_line() override {
    return last_line_of_rank(".", attempt_, first_word("first_failure"));
  }
  std::uint64_t log_bytes() override;
  std::optional<std::uint64_t> count_out_of_memory_kills() override;
  void say(const std::string& line) override { say_in_log(log_, line); }
  void note(const std::string& file, const std::string& line) override;
  void record_end(int code) override {
    tell_unmerged(".", log_);
    host::record_end(code);
  }
  void tell(const Report& report) override;

 private:
  bool is_alone() const { return settings_.places == 1; }
  void open_reports();
  void open_port();
  void keep_guard();
  void look(Time now);
  void take_events(Time patience);
  void turn(Machine& machine);
  void say_last_words(Machine& machine);

  const Supervision settings_;
  const std::string log_;
  const pid_t viewer_;
  int attempt_ = 0;
  std::optional<pid_t> script_;
  std::string token_for_port_;  ///< the port's token while the port is to be opened, and is not
  bool is_port_missed_ = false;
  Watch watch_;
  Reports reports_;
  std::optional<Coordinator> coordinator_;
  std::unique_ptr<Guard> guard_;
  Time looked_at_{};
  std::optional<Report> told_;
  /// The decision that came from machine 0 and is not handed on yet.
  std::optional<Decision> heard_;
};

SupervisedSession::SupervisedSession(const Supervision& settings, std::string log, pid_t viewer)
    : settings_(settings), log_(std::move(log)), viewer_(viewer) {
  if (settings_.place == 0) coordinator_.emplace(settings_, time_since_boot());
  if (is_alone()) return;
  // The smaller it is the smaller the guard; and it has none of the descriptors to come.
  guard_ = std::make_unique<Guard>();
}

void SupervisedSession::note(const std::string& file, const std::string& line) {
  try {
    write_file(file, line.empty() ? line : line + "\n");
  } catch (const std::runtime_error&) {
    // The disk may be full, and the run goes on.
  }
}

bool SupervisedSession::start_script(int attempt, const std::vector<int>& places) {
  // As when a job is started, where the lock is held for the first attempt: there is either kill's
  // mark or processes that bear the run's id.
  Descriptor lock;
  if (attempt != 0) {
    lock = lock_file("lock", 30'000);
    if (exists("killed")) return false;
    tell_unmerged(".", log_);
  }
  attempt_ = attempt;
  ::unlink("stopped_rank");
  std::vector<std::string> arguments = {"bash", "./script", std::to_string(attempt)};
  for (const int place : places) arguments.push_back(std::to_string(place));
  try {
    script_ = start_program(arguments, log_, Input::nothing);
  } catch (const std::runtime_error& error) {
    script_.reset();
    say(std::string("the script does not start: ") + error.what());
  }
  return true;
}

std::optional<int> SupervisedSession::wait_for_script(Time patience) {
  if (!script_) return kNotExecutable;
  const auto code = wait_for_child(*script_, patience);
  if (code) script_.reset();
  return code;
}

void SupervisedSession::end_processes() {
  std::set<pid_t> spared = {viewer_};  // -1 is no process
  if (guard_ && guard_->is_alive()) spared.insert(guard_->pid());
  // end_part() spares its caller's own children, and the script is this process's child. One that
  // is killed at it leaves work for another.
  constexpr int kMostTries = 3;
  for (int i = 0; i < kMostTries; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      spared.insert(::getpid());
      end_part(spared);
      ::_exit(0);
    }
    if (child == -1) return note("ended", with_reason("no process can be made"));
    if (wait_for_child(child) == 0) return;
  }
  note("ended", "the process that ends the others was killed");
}

std::uint64_t SupervisedSession::log_bytes() {
  struct stat found {};
  return ::stat(log_.c_str(), &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

std::optional<std::uint64_t> SupervisedSession::count_out_of_memory_kills() {
  return out_of_memory_kills(read_file("/proc/vmstat").value_or(""));
}

void SupervisedSession::tell(const Report& report) {
  told_ = report;
  if (guard_) guard_->tell(report);
  const Time now = time_since_boot();
  if (coordinator_) coordinator_->take(0, report, now);
  if (reports_.link) reports_.link->tell(report, now);
}

void SupervisedSession::open_reports() {
  const auto token = read_token();
  if (!token) {
    note("supervision", "the token is missing on machine " + std::to_string(settings_.place) +
                            ": its failures are not reported");
    return;
  }
  if (settings_.place == 0) {
    raise_open_files();
    token_for_port_ = *token;
  } else {
    reports_.link.emplace(settings_, *token, watch_, time_since_boot());
  }
}

/// A program may have the port if its holder was killed, and may give it back.
void SupervisedSession::open_port() {
  if (token_for_port_.empty()) return;
  try {
    reports_.port.emplace(settings_.port, settings_.places, token_for_port_, watch_);
    token_for_port_.clear();
    note("supervision", "ok");
  } catch (const std::runtime_error& error) {
    if (std::exchange(is_port_missed_, true)) return;
    const std::string why =
        "cannot listen on port " + std::to_string(settings_.port) + ": " + error.what();
    note("supervision", why);
    say("the run is not supervised, and a failure may not end it: " + why);
  }
}

/// One that was killed, for want of memory for one, is replaced.
void SupervisedSession::keep_guard() {
  if (!guard_ || guard_->is_alive() || find_kill()) return;
  guard_ = std::make_unique<Guard>();
  if (told_) guard_->tell(*told_);
}

void SupervisedSession::look(Time now) {
  if (now - looked_at_ < kBetweenLooks) return;
  looked_at_ = now;
  note_log_time(".");
  keep_guard();
  open_port();
}

void SupervisedSession::take_events(Time patience) {
  sigset_t none;
  ::sigemptyset(&none);
  for (const int each : watch_.wait(patience, none)) {
    const Time now = time_since_boot();
    if (reports_.port) {
      for (const PlacedReport& placed : reports_.port->take(each, now))
        coordinator_->take(placed.place, placed.report, now);
    }
    if (reports_.link) {
      if (auto decision = reports_.link->take(each, now)) heard_ = std::move(decision);
    }
  }
}

/// Handles what has happened.
void SupervisedSession::turn(Machine& machine) {
  Coordinator* const coordinator = coordinator_ ? &*coordinator_ : nullptr;
  ReportLink* const link = reports_.link ? &*reports_.link : nullptr;
  look(time_since_boot());
  take_events(patience_of(coordinator, machine, link, time_since_boot()));
  const Time now = time_since_boot();
  if (reports_.port) reports_.port->turn(now);
  const auto send = [this](const Decision& decision) {
    if (reports_.port) reports_.port->decide(decision);
  };
  take_turn(coordinator, machine, link, heard_, send, now);
}

/// The last report is still to be told, or to be heard.
void SupervisedSession::say_last_words(Machine& machine) {
  const Time end = time_since_boot() + kForLastWords;
  for (Time now = time_since_boot(); now < end; now = time_since_boot()) {
    const bool is_heard_by_none = !reports_.port && !reports_.link;
    if (is_heard_by_none || has_said_last_words(coordinator_ ? &*coordinator_ : nullptr,
                                                reports_.link ? &*reports_.link : nullptr, now))
      return;
    turn(machine);
  }
}

int SupervisedSession::run() {
  block_signals({SIGCHLD});  // a child's end is heard while this waits, and at no other time
  if (!is_alone()) open_reports();
  Machine machine(settings_, *this, time_since_boot());
  while (!machine.is_over()) turn(machine);
  if (!machine.came_too_late()) say_last_words(machine);
  note_log_time(".");
  if (guard_) guard_->dismiss();
  return machine.code();
}

}  // namespace

std::optional<std::uint64_t> out_of_memory_kills(std::string_view counters) {
  while (!counters.empty()) {
    std::string_view line = cut_line(counters);
    if (cut_word(line) == "oom_kill") return parse_number<std::uint64_t>(cut_word(line));
  }
  return std::nullopt;
}

int run_supervised(const Supervision& settings, const std::string& log, pid_t viewer) {
  return SupervisedSession(settings, log, viewer).run();
}

}  // namespace dtool::host
