// One thread and one poll: signals, the other machines, and what the workers write.
#include "trainer/launch/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "trainer/launch/out_of_memory.h"
#include "trainer/report/console.h"

namespace dtool::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A cause that was reported comes back as everybody's, or another does; where machine 0 does not
/// answer in time, this machine's own has to do. (A suspicion, machine 0 keeps for 3 s. One that is
/// dead shows at once, and to hang up on one that is slow would look to it like a loss.)
constexpr auto kAnswerToCertain = std::chrono::seconds(10);
constexpr auto kAnswerToSuspicion = std::chrono::seconds(15);
/// Where this machine was told to end: who told it may not wait longer than `dtool kill` does.
constexpr auto kAnswerToSignal = std::chrono::seconds(3);

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, each);
  // Under nohup it is ignored, but what is blocked and read like this comes all the same.
  struct sigaction former = {};
  sigaction(SIGHUP, nullptr, &former);
  if (former.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);
  return signals;
}

class Supervisor {
 public:
  Supervisor(const std::vector<WorkerCommand>& commands, const MachineInRun& self,
             CauseExchange& exchange)
      : self_(self),
        exchange_(exchange),
        former_mask_(block_signals()),
        workers_(commands, former_mask_) {
    const auto signals = watched_signals();
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~Supervisor() {
    close(signals_);
    sigprocmask(SIG_SETMASK, &former_mask_, nullptr);
  }

  /// Until the run is over, here and elsewhere.
  std::optional<Cause> watch();

  /// Ends the workers and stays until the other machines have been told.
  void end_workers(const std::optional<Cause>& cause, milliseconds grace);

  int interrupted_by() const { return interrupted_by_; }

 private:
  static sigset_t block_signals() {
    const auto signals = watched_signals();
    sigset_t former;
    sigprocmask(SIG_BLOCK, &signals, &former);
    return former;
  }
  void wait(milliseconds patience);
  void read_signals();
  void look_at_workers();
  void report(const Cause& cause);

  MachineInRun self_;
  CauseExchange& exchange_;
  sigset_t former_mask_;
  WorkerProcesses workers_;
  OutOfMemoryWatch out_of_memory_;
  int signals_ = -1;
  int interrupted_by_ = 0;
  bool has_finished_ = false;
  std::optional<Cause> own_cause_;
  Clock::time_point answer_due_;
};

void Supervisor::wait(milliseconds patience) {
  std::vector<pollfd> waiting = {{signals_, POLLIN, 0}};
  if (!exchange_.may_leave()) waiting.push_back({exchange_.descriptor(), POLLIN, 0});
  workers_.add_to(waiting);
  poll(waiting.data(), waiting.size(), static_cast<int>(patience.count()));
}

void Supervisor::read_signals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGUSR1) workers_.signal(SIGUSR1);
    if (signal == SIGCHLD || signal == SIGUSR1 || interrupted_by_ != 0) continue;
    interrupted_by_ = signal;
    Cause cause;
    cause.text = fmt::format("{}: ended by signal {} ({})", machine_name(self_.machine, self_.host),
                             signal, strsignal(signal));
    if (signal == SIGTERM || signal == SIGHUP)
      cause.workers_end = Cause::WorkersEnd::with_a_checkpoint;
    report(cause);
  }
}

void Supervisor::report(const Cause& cause) {
  const bool is_certain = cause.certainty == Cause::Certainty::certain;
  if (!own_cause_ || (is_certain && own_cause_->certainty != cause.certainty)) {
    own_cause_ = cause;
    answer_due_ = Clock::now() + (interrupted_by_ != 0 ? kAnswerToSignal
                                  : is_certain         ? kAnswerToCertain
                                                       : kAnswerToSuspicion);
  }
  exchange_.report(cause);
}

void Supervisor::look_at_workers() {
  workers_.relay();
  while (auto end = workers_.reap()) {
    if (end->status == 0) continue;
    end->out_of_memory = out_of_memory_.has_happened();
    report(cause_of(*end, self_.machine, self_.host));
  }
  if (workers_.any_running() || own_cause_ || has_finished_) return;
  has_finished_ = true;
  exchange_.finish();
}

std::optional<Cause> Supervisor::watch() {
  for (;;) {
    read_signals();
    look_at_workers();
    exchange_.work();
    if (exchange_.outcome()) return exchange_.outcome()->cause;
    if (own_cause_ && Clock::now() >= answer_due_) return own_cause_;
    out_of_memory_.remember();
    // Twice as often as signs of life are due: what wakes it in between must not delay one.
    wait(own_cause_ ? milliseconds(100) : milliseconds(kSignOfLife) / 2);
  }
}

/// After a failure there is no step that rank 0 could finish.
void Supervisor::end_workers(const std::optional<Cause>& cause, milliseconds grace) {
  const bool may_write = cause && cause->workers_end == Cause::WorkersEnd::with_a_checkpoint;
  workers_.signal(may_write ? SIGTERM : SIGKILL);
  const auto deadline = Clock::now() + grace;
  for (;;) {
    read_signals();
    workers_.relay();
    while (workers_.reap()) {
    }
    exchange_.work();
    const bool is_told = exchange_.may_leave() || !exchange_.outcome();
    if (is_told && !workers_.any_running()) return;
    if (Clock::now() >= deadline) workers_.signal(SIGKILL);
    wait(milliseconds(100));
  }
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

int supervise(const std::vector<WorkerCommand>& commands, const MachineInRun& self,
              CauseExchange& exchange, milliseconds grace) {
  Supervisor supervisor(commands, self, exchange);
  const auto cause = supervisor.watch();
  supervisor.end_workers(cause, grace);
  if (cause) fmt::print(stderr, "{}{}", over_the_bar(), last_line(*cause, self.machines));
  if (supervisor.interrupted_by() != 0) return 128 + supervisor.interrupted_by();
  return cause ? cause->exit_code : kTrained;
}

}  // namespace dtool::trainer
