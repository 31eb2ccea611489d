// dtool-trainer: reads the flags and the experiment, then starts this machine's workers or, under
// another launcher, becomes one. Needs no LibTorch, which takes 0.4 s and 160 MB to load: only
// dtool-trainer-worker does.
#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/cause_exchange.h"
#include "trainer/launch/last_words.h"
#include "trainer/launch/launch.h"
#include "trainer/launch/requests.h"
#include "trainer/launch/run_token.h"
#include "trainer/launch/supervisor.h"
#include "trainer/launch/visible_gpus.h"
#include "trainer/reinforcement/rollout_options.h"
#include "trainer/settings/command_line.h"
#include "trainer/settings/experiment.h"
#include "trainer/settings/usage_error.h"

namespace {

using namespace dtool::trainer;

#ifdef DTOOL_TRAINER_NCCL
constexpr const char* kBackends = "gloo, nccl";
constexpr bool kUsesGpus = true;
#else
constexpr const char* kBackends = "gloo";
constexpr bool kUsesGpus = false;
#endif

std::filesystem::path worker_program() {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "dtool-trainer-worker";
  if (!std::filesystem::exists(program)) {
    throw UsageError("no " + program.string(),
                     "dtool-trainer and dtool-trainer-worker go together");
  }
  return program;
}

void check_machines(const Experiment& experiment, const Options& options) {
  const int machines = options.distributed_nodes.value_or(1);
  if (experiment.distributed_nodes && *experiment.distributed_nodes != machines) {
    throw UsageError(fmt::format("{}: distributed_nodes is {}, but this run has {} machine{}",
                                 options.experiment.string(), *experiment.distributed_nodes,
                                 machines, machines == 1 ? "" : "s"),
                     "drop the key, or make it the number of machines");
  }
}

void check_ranks(const Experiment& experiment, const Options& options, std::int64_t ranks) {
  try {
    experiment.own->check_ranks(ranks);
  } catch (const UsageError& mistake) {
    throw UsageError(fmt::format("{}: {}", options.experiment.string(), mistake.what()),
                     mistake.hint);
  }
}

[[noreturn]] void become(const std::filesystem::path& program, char** argv) {
  execv(program.c_str(), argv);
  throw UsageError(fmt::format("cannot start {}: {}", program.string(), std::strerror(errno)));
}

/// Under another launcher: this process goes on as the worker that the launcher meant it to be.
[[noreturn]] void become_worker(const Place& place, const std::filesystem::path& program,
                                int threads, char** argv) {
  for (const auto& each : worker_variables(place, process_environment, threads)) {
    const auto equals = each.find('=');
    setenv(each.substr(0, equals).c_str(), each.c_str() + equals + 1, 1);
  }
  become(program, argv);
}

MachineInRun machine_in_run(const Options& options) {
  const int gpus = kUsesGpus ? count_gpus(process_environment) : 0;
  MachineInRun self;
  self.machine = options.machine_id.value_or(0);
  self.machines = options.distributed_nodes.value_or(1);
  self.workers = options.nproc_per_node.value_or(std::max(1, gpus));
  self.host = host_name();
  self.listener = options.listener.value_or(Endpoint{"127.0.0.1", 0});
  self.rendezvous_timeout = options.rendezvous_timeout;
  return self;
}

std::int64_t count_ranks(const Options& options) {
  const MachineInRun self = machine_in_run(options);
  return std::int64_t{self.workers} * self.machines;
}

Place place_of_first_worker(const MachineInRun& self, const CauseExchange& exchange) {
  Place first;
  first.local_world_size = self.workers;
  first.machine = self.machine;
  first.world_size = self.workers * self.machines;
  first.rank = self.workers * self.machine;
  first.listener = self.listener;
  // With several machines, the machines' processes themselves meet at the address that was given.
  if (self.machines > 1 || first.listener.port == 0) first.listener.port = exchange.store_port();
  return first;
}

/// What the launch must know of the work.
struct Needs {
  Backend backend = Backend::automatic;
  std::int64_t multiply_adds = 0;  ///< of a rank's step; measuring communication needs no threads
  std::chrono::seconds silence = kCommTimeout;  ///< how long a rank may give no sign of life
};

int start_workers(const Options& options, const Needs& needs, const std::filesystem::path& program,
                  int argc, char** argv) {
  MachineInRun self = machine_in_run(options);
  if (kUsesGpus) {
    check_gpus(needs.backend, self.workers, count_gpus(process_environment));
  }
  self.silence = needs.silence;
  self.token = read_run_token(process_environment);
  if (self.machines == 1 && self.workers > 1) make_own_run_token();
  const auto exchange = join_exchange(self);
  const std::vector<std::string> arguments(argv, argv + argc);
  const int threads = useful_threads(count_cores(), self.workers, needs.multiply_adds);
  const Place first = place_of_first_worker(self, *exchange);
  return supervise(plan_workers(first, program, arguments, process_environment, threads), self,
                   *exchange);
}

/// A mistake that this machine found before its workers started: the other machines would wait for
/// it. Returns the exit code; throws where there is nobody to tell.
int tell_other_machines(const Options& options, const UsageError& mistake) {
  MachineInRun self = machine_in_run(options);
  if (self.machines == 1) throw mistake;
  self.token = read_run_token(process_environment);
  self.rendezvous_timeout = std::min(self.rendezvous_timeout, std::chrono::seconds(10));
  std::unique_ptr<CauseExchange> exchange;
  try {
    exchange = join_exchange(self);
  } catch (const std::exception&) {
    throw mistake;
  }
  Cause cause;
  cause.exit_code = kMistake;
  cause.text = fmt::format("{}: {}", machine_name(self.machine, self.host), mistake.what());
  cause.hint = mistake.hint;
  exchange->report(cause);
  return supervise({}, self, *exchange);
}

int work(const Options& options, const std::optional<Place>& place, int argc, char** argv) {
  Needs needs;
  if (options.comm) {
    needs.backend = options.comm->backend;
  } else {
    const Experiment experiment = read_experiment(options.experiment);
    needs = {experiment.distributed.backend, experiment.own->multiply_adds_per_batch(),
             experiment.distributed.collective_timeout};
    if (!place) check_machines(experiment, options);
    check_ranks(experiment, options, place ? place->world_size : count_ranks(options));
  }
  const auto program = worker_program();
  setenv("TORCH_CPP_LOG_LEVEL", "ERROR", 0);  // c10d warns of every retry while machines gather
  if (place) {
    const int threads = useful_threads(count_cores(), place->local_world_size, needs.multiply_adds);
    become_worker(*place, program, threads, argv);
  }
  return start_workers(options, needs, program, argc, argv);
}

/// Shows an episode. Only a network's policy needs the worker, which has LibTorch.
int roll_out(const Options& options, char** argv) {
  const Experiment experiment = read_experiment(options.experiment);
  if (!experiment.own->has_episodes()) refuse_rollout(options.experiment);
  if (*options.rollout->policy == PolicyKind::checkpoint) become(worker_program(), argv);
  experiment.own->show_episode(*options.rollout);
  return kTrained;
}

int run(int argc, char** argv) {
  const Options options = parse_command_line(argc, argv);
  if (options.action == Action::help) {
    fmt::print("{}", usage_text(options));
    return kTrained;
  }
  if (options.action == Action::version) {
    fmt::print("dtool-trainer {} (LibTorch {}, backends {})\n", DTOOL_VERSION, TORCH_VERSION,
               kBackends);
    return kTrained;
  }
  if (options.action == Action::check) {
    const Experiment experiment = read_experiment(options.experiment);
    check_machines(experiment, options);
    check_ranks(experiment, options, count_ranks(options));
    return kTrained;
  }
  if (options.action == Action::rollout) return roll_out(options, argv);
  const auto place = place_from(process_environment, options);
  try {
    return work(options, place, argc, argv);
  } catch (const NotAdmitted&) {
    throw;  // there is nobody to tell
  } catch (const UsageError& mistake) {
    if (!place) return tell_other_machines(options, mistake);
    // The other workers of this machine read the same file and would say the same.
    if (place->local_rank != 0) return kMistake;
    throw;
  }
}

}  // namespace

int main(int argc, char** argv) {
  dtool::trainer::ignore_checkpoint_signal();
  try {
    return run(argc, argv);
  } catch (const dtool::trainer::UsageError& mistake) {
    dtool::trainer::say_last_words(mistake.what(), mistake.hint);
    return dtool::trainer::kMistake;
  } catch (const std::exception& problem) {
    dtool::trainer::say_last_words(problem.what());
    return dtool::trainer::kFailed;
  }
}
