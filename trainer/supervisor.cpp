// fork, exec, sigtimedwait: one thread, no library, so that the machine's process stays small.
#include "trainer/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>

#include "trainer/console.h"
#include "trainer/last_words.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a worker that failed because of another one is given for that other one's own end to be
/// seen.
constexpr auto kCauseIsOnItsWay = std::chrono::seconds(4);

struct Worker {
  pid_t process = -1;
  int rank = 0;
  int last_words = -1;  ///< read end of its pipe
  bool running = false;
};

struct Failure {
  int rank = 0;
  int status = 0;  ///< as waitpid gives it
  std::string words;
};

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, each);
  return signals;
}

[[noreturn]] void become_worker(const WorkerCommand& command, pid_t parent, int pipe,
                                const sigset_t& former_mask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailed);  // it died before the line above
  sigprocmask(SIG_SETMASK, &former_mask, nullptr);
  fcntl(pipe, F_SETFD, 0);
  setenv(kLastWordsVariable, fmt::format("{}", pipe).c_str(), 1);
  for (const auto& each : command.environment) {
    const auto equals = each.find('=');
    setenv(each.substr(0, equals).c_str(), each.c_str() + equals + 1, 1);
  }
  std::vector<char*> arguments;
  for (const auto& each : command.arguments) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  execv(command.program.c_str(), arguments.data());
  say_last_words(
      fmt::format("cannot start {}: {}", command.program.string(), std::strerror(errno)));
  _exit(kFailed);
}

Worker start(const WorkerCommand& command, const sigset_t& former_mask) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  }
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "cannot start a worker");
  if (child == 0) become_worker(command, parent, ends[1], former_mask);
  close(ends[1]);
  return {child, command.rank, ends[0], true};
}

std::string read_last_words(const Worker& worker) {
  char buffer[4096];
  const auto size = read(worker.last_words, buffer, sizeof buffer);
  return size > 0 ? std::string(buffer, static_cast<std::size_t>(size)) : "";
}

/// Waits for whichever worker has ended; absent when none has.
std::optional<Failure> reap_one(std::vector<Worker>& workers) {
  for (Worker& each : workers) {
    int status = 0;
    if (!each.running || waitpid(each.process, &status, WNOHANG) != each.process) continue;
    each.running = false;
    Failure end{each.rank, status, read_last_words(each)};
    close(each.last_words);
    return end;
  }
  return std::nullopt;
}

void send_all(const std::vector<Worker>& workers, int signal) {
  for (const Worker& each : workers) {
    if (each.running) kill(each.process, signal);
  }
}

bool any_running(const std::vector<Worker>& workers) {
  return std::any_of(workers.begin(), workers.end(), [](const Worker& w) { return w.running; });
}

bool caused_by_another(const Failure& failure) {
  return WIFEXITED(failure.status) && WEXITSTATUS(failure.status) == kOthersFailed;
}

/// A signal that came, or 0 after `patience`.
int next_signal(Clock::duration patience) {
  const auto signals = watched_signals();
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::max(patience, Clock::duration::zero()));
  const timespec wait{static_cast<time_t>(nanoseconds.count() / 1'000'000'000),
                      static_cast<long>(nanoseconds.count() % 1'000'000'000)};
  return std::max(0, sigtimedwait(&signals, nullptr, &wait));
}

void end_all(std::vector<Worker>& workers, std::chrono::milliseconds grace) {
  send_all(workers, SIGTERM);
  const auto deadline = Clock::now() + grace;
  while (any_running(workers)) {
    while (reap_one(workers)) {
    }
    if (!any_running(workers)) break;
    if (Clock::now() >= deadline) send_all(workers, SIGKILL);
    next_signal(std::chrono::milliseconds(100));
  }
}

std::string describe(const Failure& failure, int machine) {
  if (WIFSIGNALED(failure.status)) {
    const int signal = WTERMSIG(failure.status);
    return fmt::format("machine {}: rank {} was killed by signal {} ({})\n", machine, failure.rank,
                       signal, strsignal(signal));
  }
  const int code = WEXITSTATUS(failure.status);
  if (code == kMistake && !failure.words.empty()) return failure.words;
  if (caused_by_another(failure)) {
    return fmt::format("machine {}: rank {} stopped: {}", machine, failure.rank, failure.words);
  }
  return fmt::format("machine {}: rank {} failed with exit code {}{}", machine, failure.rank, code,
                     failure.words.empty() ? "\n" : ": " + failure.words);
}

int tell(const Failure& failure, int machine) {
  fmt::print(stderr, "{}dtool-trainer: {}", over_the_bar(), describe(failure, machine));
  const bool mistake = WIFEXITED(failure.status) && WEXITSTATUS(failure.status) == kMistake;
  return mistake ? kMistake : kFailed;
}

/// Until all are well and done (absent), a signal comes (its number is put in `interrupted`), or
/// one fails. A worker that stopped because of another is only blamed if that other one is not of
/// this machine.
std::optional<Failure> first_failure(std::vector<Worker>& workers, int& interrupted) {
  std::optional<Failure> first;
  auto deadline = Clock::time_point::max();
  while (any_running(workers)) {
    while (auto end = reap_one(workers)) {
      if (end->status == 0) continue;
      if (!caused_by_another(*end)) return end;
      if (first) continue;
      first = std::move(end);
      deadline = Clock::now() + kCauseIsOnItsWay;
    }
    if (!any_running(workers) || Clock::now() >= deadline) break;
    const auto patience =
        std::min<Clock::duration>(deadline - Clock::now(), std::chrono::seconds(3600));
    const int signal = next_signal(patience);
    if (signal != 0 && signal != SIGCHLD) {
      interrupted = signal;
      return std::nullopt;
    }
  }
  return first;
}

}  // namespace

std::vector<WorkerCommand> plan_workers(const Place& first, const std::filesystem::path& program,
                                        const std::vector<std::string>& arguments,
                                        const Environment& environment, int threads) {
  std::vector<WorkerCommand> workers;
  for (int local = 0; local < first.local_world_size; ++local) {
    Place place = first;
    place.rank += local;
    place.local_rank = local;
    workers.push_back(
        {program, arguments, worker_variables(place, environment, threads), place.rank});
  }
  return workers;
}

int supervise(const std::vector<WorkerCommand>& commands, int machine,
              std::chrono::milliseconds grace) {
  const auto signals = watched_signals();
  sigset_t former_mask;
  sigprocmask(SIG_BLOCK, &signals, &former_mask);

  std::vector<Worker> workers;
  for (const auto& each : commands) workers.push_back(start(each, former_mask));

  int interrupted = 0;
  const auto failure = first_failure(workers, interrupted);
  end_all(workers, grace);
  if (interrupted != 0) {
    fmt::print(stderr, "{}dtool-trainer: machine {}: ended by signal {} ({})\n", over_the_bar(),
               machine, interrupted, strsignal(interrupted));
    return 128 + interrupted;
  }
  return failure ? tell(*failure, machine) : kTrained;
}

}  // namespace dtool::trainer
