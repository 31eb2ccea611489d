// SPDX-License-Identifier: MIT
#include "trainer/launch/workers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "killfiles/printable.h"
#include "trainer/launch/requests.h"
#include "trainer/report/console.h"
#include "trainer/report/written_file.h"

namespace dtool::trainer {

// The last words are written at once, so that lines of several processes do not mix.

namespace {

bool write_to_file(const std::string& text) {
  if (!has_file_for_last_words()) return false;
  const host::Descriptor file(
      open(std::getenv(kLastWordsVariable), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  return file.is_open() && write_all(file.get(), text);
}

}  // namespace

bool has_file_for_last_words() {
  return std::getenv(kLastWordsVariable) != nullptr;
}

void say_last_words(const std::string& message, const std::string& hint) {
  // A second caller waits, since it may end the process; but not for ever, since stderr may not be
  // read any more.
  static std::timed_mutex saying;
  static bool said = false;
  std::string text = message + "\n";
  if (!hint.empty()) text += "hint: " + hint + "\n";
  text =
      killfiles::printable(text, killfiles::Allowed::lines);  // parts come from files and programs
  const std::unique_lock lock(saying, std::chrono::seconds(2));
  if (!lock || std::exchange(said, true)) return;
  if (!write_to_file(text)) write_all(STDERR_FILENO, "dtool-trainer: " + text);
}

namespace {

using Clock = std::chrono::steady_clock;

/// A worker that noticed another one's end may be seen before that one.
constexpr auto kCauseIsOnItsWay = std::chrono::seconds(3);

struct Worker {
  pid_t process = -1;
  int rank = 0;
  int last_words = -1;  ///< a file in memory
  bool is_running = true;
  bool is_stopped = false;
};

/// Why the run has failed.
struct Cause {
  std::string text;
  std::string hint;
  int exit_code = kFailed;  ///< the exit code of this process
  bool is_certain = true;   ///< no other worker's end can be a better one
};

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, each);
  // Under nohup the signal is ignored, but a blocked signal that is waited for arrives all the
  // same.
  struct sigaction former = {};
  sigaction(SIGHUP, nullptr, &former);
  if (former.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);
  return signals;
}

[[noreturn]] void become_worker(const std::filesystem::path& program,
                                const std::vector<std::string>& arguments,
                                const std::vector<std::string>& environment, pid_t parent,
                                const sigset_t& mask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailed);  // it died before the line above
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  for (const auto& each : environment) {
    const auto equals = each.find('=');
    setenv(each.substr(0, equals).c_str(), each.c_str() + equals + 1, 1);
  }
  std::vector<char*> pointers;
  for (const auto& each : arguments) pointers.push_back(const_cast<char*>(each.c_str()));
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  say_last_words(fmt::format("cannot start {}: {}", program.string(), std::strerror(errno)));
  _exit(kFailed);
}

class Workers {
 public:
  explicit Workers(std::string machine)
      : machine_(std::move(machine)), signals_(watched_signals()) {
    sigprocmask(SIG_BLOCK, &signals_, &former_mask_);
  }
  void start(const Place& place, const std::filesystem::path& program,
             const std::vector<std::string>& arguments, int threads);
  int wait_for_all();

 private:
  bool any_running() const { return std::ranges::any_of(workers_, &Worker::is_running); }
  void send(int signal) const;
  void take_signal();
  void look_at_workers();
  Cause cause_of(const Worker& worker, int status) const;
  Cause final_cause() const;

  std::string machine_;
  sigset_t signals_;
  sigset_t former_mask_{};
  std::vector<Worker> workers_;
  std::optional<Cause> cause_;
  Clock::time_point failed_at_;
  int interrupted_by_ = 0;
  Clock::time_point interrupted_at_;
};

void Workers::start(const Place& place, const std::filesystem::path& program,
                    const std::vector<std::string>& arguments, int threads) {
  Worker worker;
  worker.rank = place.rank;
  worker.last_words = memfd_create("last_words", MFD_CLOEXEC);
  auto environment = worker_variables(place, process_environment, threads);
  const pid_t parent = getpid();
  environment.push_back(
      fmt::format("{}=/proc/{}/fd/{}", kLastWordsVariable, parent, worker.last_words));
  worker.process = fork();
  if (worker.process < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot start a worker");
  }
  if (worker.process == 0) become_worker(program, arguments, environment, parent, former_mask_);
  workers_.push_back(worker);
}

void Workers::send(int signal) const {
  for (const Worker& each : workers_) {
    if (each.is_running) kill(each.process, signal);
  }
}

void Workers::take_signal() {
  const timespec patience{cause_ || interrupted_by_ != 0 ? 0 : 1, 100'000'000};
  const int signal = sigtimedwait(&signals_, nullptr, &patience);
  if (signal <= 0 || signal == SIGCHLD) return;
  send(signal == SIGHUP ? SIGTERM : signal);
  if (signal == SIGUSR1 || interrupted_by_ != 0) return;
  interrupted_by_ = signal;
  interrupted_at_ = Clock::now();
}

Cause Workers::cause_of(const Worker& worker, int status) const {
  char said[4096];
  const auto size = pread(worker.last_words, said, sizeof said, 0);
  std::string words(said, size > 0 ? static_cast<std::size_t>(size) : 0);
  Cause cause;
  constexpr std::string_view kHint = "\nhint: ";
  if (const auto hint = words.find(kHint); hint != words.npos) {
    cause.hint = words.substr(hint + kHint.size());
    cause.hint.erase(cause.hint.find_last_not_of('\n') + 1);
    words.erase(hint);
  }
  words.erase(words.find_last_not_of('\n') + 1);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  // Without words it is no code of ours: whatever the worker ran chose the same number.
  const bool is_ours = !words.empty();
  cause.is_certain = !is_ours || code != kOthersFailed;
  if (is_ours && code == kMistake) cause.exit_code = kMistake;
  if (is_ours && (code == kOthersFailed || code == kRunFailed)) {
    cause.text = words;
    return cause;
  }
  const auto how = WIFSIGNALED(status) ? fmt::format("was killed by signal {} ({})",
                                                     WTERMSIG(status), strsignal(WTERMSIG(status)))
                                       : fmt::format("failed with exit code {}", code);
  cause.text =
      fmt::format("rank {} on {} {}{}{}", worker.rank, machine_, how, is_ours ? ": " : "", words);
  return cause;
}

void Workers::look_at_workers() {
  for (Worker& each : workers_) {
    int status = 0;
    while (each.is_running &&
           waitpid(each.process, &status, WNOHANG | WUNTRACED | WCONTINUED) == each.process) {
      each.is_stopped = WIFSTOPPED(status);
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) continue;
      each.is_running = false;
      if (status == 0 || interrupted_by_ != 0) continue;
      const Cause cause = cause_of(each, status);
      if (!cause_) failed_at_ = Clock::now();
      if (!cause_ || (cause.is_certain && !cause_->is_certain)) cause_ = cause;
    }
  }
}

/// A worker that is stopped by a signal is why others have waited in vain.
Cause Workers::final_cause() const {
  const auto stopped = std::ranges::find_if(workers_, &Worker::is_stopped);
  if (cause_->is_certain || stopped == workers_.end()) return *cause_;
  return {
      fmt::format("rank {} on {} gives no sign of life: it is stopped", stopped->rank, machine_),
      "", kFailed, true};
}

int Workers::wait_for_all() {
  for (look_at_workers(); any_running(); look_at_workers()) {
    const auto now = Clock::now();
    if (interrupted_by_ != 0) {
      if (now - interrupted_at_ >= kTerminationGrace) send(SIGKILL);
    } else if (cause_ && (cause_->is_certain || now - failed_at_ >= kCauseIsOnItsWay)) {
      cause_ = final_cause();
      cause_->is_certain = true;  // how the others end now says nothing
      send(SIGKILL);
    }
    take_signal();
  }
  if (interrupted_by_ != 0) {
    cause_ = Cause{fmt::format("{}: ended by signal {} ({})", machine_, interrupted_by_,
                               strsignal(interrupted_by_)),
                   "", 128 + interrupted_by_, true};
  }
  if (!cause_) return kTrained;
  fmt::print(stderr, "{}dtool-trainer: {}\n", over_the_bar(), cause_->text);
  if (!cause_->hint.empty()) fmt::print(stderr, "hint: {}\n", cause_->hint);
  return cause_->exit_code;
}

[[noreturn]] void trace(const std::filesystem::path& program, int output) {
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
  ::execl(program.c_str(), program.c_str(), nullptr);
  ::_exit(127);
}

std::string read_to_end(int pipe) {
  std::string text;
  std::array<char, 65536> piece;
  for (;;) {
    const ssize_t size = ::read(pipe, piece.data(), piece.size());
    if (size > 0) text.append(piece.data(), static_cast<std::size_t>(size));
    if (size == 0 || (size < 0 && errno != EINTR)) return text;
  }
}

/// The name in `\tlibc10.so => not found` or `PROGRAM: LIBRARY: version `GLIBC_2.38' not found (…`;
/// empty: nothing is missing.
std::string_view missing_in(std::string_view line) {
  if (line.find("not found") == line.npos) return {};
  const std::size_t quote = line.find("version `");
  if (quote != line.npos) {
    line.remove_prefix(quote + std::string_view("version `").size());
    return line.substr(0, line.find('\''));
  }
  line.remove_prefix(std::min(line.find_first_not_of("\t "), line.size()));
  return line.substr(0, line.find(' '));
}

}  // namespace

int run_workers(const Place& first, const std::filesystem::path& program,
                const std::vector<std::string>& arguments, int threads) {
  Workers workers(fmt::format("machine {} ({})", first.machine, host_name()));
  for (int local = 0; local < first.local_world_size; ++local) {
    Place place = first;
    place.rank += local;
    place.local_rank = local;
    workers.start(place, program, arguments, threads);
  }
  return workers.wait_for_all();
}

std::vector<std::string> missing_in_trace(std::string_view trace) {
  std::vector<std::string> missing;
  while (!trace.empty()) {
    const std::size_t end = std::min(trace.find('\n'), trace.size());
    std::string name(missing_in(trace.substr(0, end)));
    if (!name.empty() && std::ranges::count(missing, name) == 0) missing.push_back(std::move(name));
    trace.remove_prefix(std::min(end + 1, trace.size()));
  }
  return missing;
}

std::vector<std::string> missing_libraries(const std::filesystem::path& program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "no pipe");
  const pid_t child = ::fork();
  if (child == 0) trace(program, ends[1]);
  ::close(ends[1]);
  const std::string text = child == -1 ? "" : read_to_end(ends[0]);
  ::close(ends[0]);
  if (child == -1) throw std::system_error(errno, std::generic_category(), "no process");
  int status = 0;
  while (::waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  std::vector<std::string> missing = missing_in_trace(text);
  if (missing.empty() && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
    missing.push_back(program.string());
  return missing;
}

}  // namespace dtool::trainer
