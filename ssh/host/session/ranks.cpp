// SPDX-License-Identifier: MIT
// The processes of one machine, without mpirun or a scheduler.
#include "ssh/host/session/rank.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <stdexcept>

#include "ssh/host/child.h"
#include "ssh/host/files.h"
#include "ssh/host/process_table.h"
#include "ssh/host/session/job.h"
#include "ssh/host/session/last_words.h"
#include "ssh/host/session/rank_logs.h"
#include "ssh/host/session/report.h"
#include "ssh/wire/words.h"

namespace dtool::host {
namespace {

using namespace std::chrono_literals;

/// The aftermath of a rank's end may be seen before that end.
constexpr Time kForCause = 1s;
constexpr Time kGrace = 5s;

struct Plan {
  std::string state;  ///< folder
  int attempt = 0;
  int place = 0;
  int first_rank = 0;
  int processes = 1;
  std::string rendezvous;  ///< env, never or independent
  bool fill = false;
  std::vector<std::string> program;
};

Plan read_plan(const std::vector<std::string>& words) {
  const auto number = [&](std::size_t at, int least) { return number_among(words, at, least); };
  if (words.size() < 8) throw std::runtime_error("ranks: words are missing");
  return {words[0],     number(1, 0), number(2, 0),      number(3, 0),
          number(4, 1), words[5],     words[6] == "yes", {words.begin() + 7, words.end()}};
}

struct Rank {
  pid_t pid = -1;
  int number = 0;
  bool is_running = true;
  bool is_stopped = false;  ///< a signal has stopped it
};

class Ranks {
 public:
  explicit Ranks(Plan plan);
  int run();

 private:
  void start(int local_rank);
  [[noreturn]] void become(int number, int local_rank, const std::vector<char*>& arguments);
  void wait();
  void look();
  void look_at_stopped();
  void judge(const RankEnd& end, int number);
  void tell_failure();
  void send(int signal) const;
  void end_all();
  bool is_independent() const { return plan_.rendezvous == "independent"; }
  bool any_running() const { return std::ranges::any_of(ranks_, &Rank::is_running); }
  bool is_supervised() const { return exists(path("supervise")); }
  std::string path(const std::string& file) const { return plan_.state + "/" + file; }

  const Plan plan_;
  sigset_t signals_{};
  sigset_t former_mask_{};
  struct sigaction former_hangup_ {};
  std::vector<Rank> ranks_;
  RankLogs logs_;
  std::optional<RankEnd> failure_;
  Time failed_at_{};
  bool was_told_to_end_ = false;
  std::string stopped_;
};

void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
}

std::vector<int> numbers_of(const Plan& plan) {
  std::vector<int> numbers;
  for (int i = 0; i < plan.processes; ++i) numbers.push_back(plan.first_rank + i);
  return numbers;
}

Ranks::Ranks(Plan plan)
    : plan_(std::move(plan)),
      logs_(plan_.state, plan_.attempt, numbers_of(plan_), plan_.processes) {
  ::sigprocmask(SIG_BLOCK, nullptr, &former_mask_);
  signals_ = block_signals({SIGCHLD, SIGTERM, SIGINT, SIGUSR1});
  // The terminal's loss is the processes' own to bear.
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGHUP, &ignored, &former_hangup_);
}

/// In the child. Nothing else runs in this process, so it may do what it likes before exec.
void Ranks::become(int number, int local_rank, const std::vector<char*>& arguments) {
  const std::string rank = std::to_string(is_independent() ? 0 : number);
  if (plan_.rendezvous != "never") {
    ::setenv("RANK", rank.c_str(), 1);
    ::setenv("LOCAL_RANK", is_independent() ? "0" : std::to_string(local_rank).c_str(), 1);
    ::setenv("ROLE_RANK", rank.c_str(), 1);
  }
  ::setenv("DTOOL_LAST_WORDS", path(last_words_file(plan_.attempt, number)).c_str(), 1);
  ::sigaction(SIGHUP, &former_hangup_, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &former_mask_, nullptr);
  // One alone may be spoken to at the session's terminal.
  if (plan_.processes > 1) give_nothing({STDIN_FILENO});
  if (logs_.are_open()) {
    for (const int each : {STDOUT_FILENO, STDERR_FILENO})
      ::dup2(logs_.file(static_cast<std::size_t>(local_rank)), each);
  }
  ::execvp(arguments[0], arguments.data());
  const std::string sentence = "dtool: " + with_reason(plan_.program[0]) + "\n";
  [[maybe_unused]] const ssize_t size = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  ::_exit(kCannotRun);
}

void Ranks::start(int local_rank) {
  std::vector<std::string> program = plan_.program;
  if (plan_.fill) {
    for (std::string& word : program) {
      replace_all(word, "{rank}", std::to_string(plan_.first_rank + local_rank));
      replace_all(word, "{local_rank}", std::to_string(local_rank));
    }
  }
  const std::vector<char*> arguments = as_pointers(program);
  Rank rank;
  rank.number = plan_.first_rank + local_rank;
  rank.pid = ::fork();
  if (rank.pid == -1) throw std::runtime_error(with_reason("no process can be made"));
  if (rank.pid == 0) become(rank.number, local_rank, arguments);
  ranks_.push_back(rank);
}

void Ranks::send(int signal) const {
  for (const Rank& each : ranks_) {
    if (each.is_running) ::kill(each.pid, signal);
  }
}

/// Ctrl-C at the terminal, dtool kill, and a session that ends an attempt reach the processes, too.
bool reaches_all(const siginfo_t& info) {
  if (info.si_code == SI_KERNEL) return true;
  const auto sender = find_process(info.si_pid);
  return sender && sender->name == "dtool-host";
}

void Ranks::wait() {
  const timespec patience{failure_ ? 0 : 3600, 100'000'000};
  siginfo_t info{};
  const int signal = ::sigtimedwait(&signals_, &info, &patience);
  if (signal <= 0 || signal == SIGCHLD) return;
  if (signal != SIGUSR1) was_told_to_end_ = true;
  if (!reaches_all(info)) send(signal);
}

void Ranks::judge(const RankEnd& end, int number) {
  if (!failure_) failed_at_ = time_since_boot();
  const auto is_aftermath = [](const RankEnd& each) {
    return meaning_of(each) == Meaning::aftermath;
  };
  if (failure_ && (is_aftermath(end) || !is_aftermath(*failure_))) return;
  failure_ = end;
  write_in_place(path("first_failure"), std::to_string(number) + "\n");
}

void Ranks::look() {
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
    const auto rank = std::ranges::find(ranks_, pid, &Rank::pid);
    if (rank == ranks_.end()) continue;
    rank->is_stopped = WIFSTOPPED(status);
    if (WIFSTOPPED(status) || WIFCONTINUED(status)) continue;
    rank->is_running = false;
    logs_.end(static_cast<std::size_t>(rank - ranks_.begin()));
    const int code = to_exit_code(status);
    if (code == 0) continue;
    judge({"rank " + std::to_string(rank->number) + " on machine " + std::to_string(plan_.place),
           code, read_last_words(path(last_words_file(plan_.attempt, rank->number))),
           last_line_of_rank(plan_.state, plan_.attempt, std::to_string(rank->number))},
          rank->number);
  }
  logs_.keep();
  look_at_stopped();
}

/// Others may soon wait for it in vain: the session is to know.
void Ranks::look_at_stopped() {
  const auto rank = std::ranges::find(ranks_, true, &Rank::is_stopped);
  std::string now = rank == ranks_.end() ? "" : std::to_string(rank->number);
  if (now == stopped_) return;
  stopped_ = std::move(now);
  write_in_place(path("stopped_rank"), stopped_ + "\n");
}

void Ranks::tell_failure() {
  const bool has_others = any_running();
  // The session will say it of the whole run, and may know better.
  const bool will_be_told = is_supervised() && meaning_of(*failure_) == Meaning::aftermath;
  const bool has_news = plan_.processes > 1 || (!is_supervised() && !failure_->words.empty());
  if (will_be_told || !has_news) return;
  failure_->last.clear();  // it stands above
  const std::string line = "dtool: " + describe(*failure_) +
                           (has_others ? "; the others of this machine are ended too" : "") + "\n";
  [[maybe_unused]] const ssize_t size = ::write(STDERR_FILENO, line.data(), line.size());
}

/// By TERM, and soon by KILL.
void Ranks::end_all() {
  send(SIGTERM);
  const Time end = time_since_boot() + kGrace;
  for (look(); any_running() && time_since_boot() < end; look()) wait();
  send(SIGKILL);
  for (look(); any_running(); look()) wait();
}

int Ranks::run() {
  // The file's content until a rank fails.
  write_in_place(path("first_failure"), std::string(kOwnProcess) + "\n");
  std::vector<pid_t> processes;
  try {
    for (int i = 0; i < plan_.processes; ++i) {
      start(i);
      processes.push_back(ranks_.back().pid);
    }
  } catch (const std::runtime_error&) {
    failure_ = RankEnd{"", kCannotRun};  // no end of a rank is the cause
    end_all();
    throw;
  }
  logs_.start(processes);
  const auto is_judged = [this] {
    return failure_ && (meaning_of(*failure_) != Meaning::aftermath ||
                        time_since_boot() - failed_at_ >= kForCause);
  };
  for (look(); any_running() && (was_told_to_end_ || is_independent() || !is_judged()); look())
    wait();
  if (!any_running()) logs_.finish();
  if (!failure_) return 0;
  if (was_told_to_end_) return failure_->code;
  logs_.settle();
  tell_failure();
  if (is_supervised()) return failure_->code;
  end_all();
  logs_.finish();
  return failure_->code;
}

}  // namespace

int run_ranks(const std::vector<std::string>& words) {
  return Ranks(read_plan(words)).run();
}

}  // namespace dtool::host
