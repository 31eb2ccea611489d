// SPDX-License-Identifier: MIT
// dtool-trainer: reads the flags and the experiment, then starts this machine's workers or, under
// another launcher, becomes one. It does not load LibTorch, which takes 0.4 s and 160 MB; only
// dtool-trainer-worker does.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "killfiles/version.h"
#include "trainer/launch/greeting.h"
#include "trainer/launch/launch.h"
#include "trainer/launch/network.h"
#include "trainer/launch/requests.h"
#include "trainer/launch/workers.h"
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

/// Machines have equally many ranks.
RankCount ranks_of(const Place& place) {
  return {place.world_size, std::max(1, place.world_size / place.local_world_size)};
}

void check_ranks(const Experiment& experiment, const CommandLine& options, const RankCount& ranks) {
  with_place(options.experiment.string(), [&] { experiment.own->check_ranks(ranks); });
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

/// The place of this machine's first worker, if this machine starts its workers itself.
Place place_of_first_worker(const CommandLine& options) {
  const int gpus = kUsesGpus ? count_gpus(process_environment) : 0;
  Place first;
  first.local_world_size = options.nproc_per_node.value_or(std::max(1, gpus));
  first.machine = options.machine_id.value_or(0);
  first.world_size = first.local_world_size * options.distributed_nodes.value_or(1);
  first.rank = first.local_world_size * first.machine;
  first.listener = options.listener.value_or(Endpoint{"127.0.0.1", 0});
  return first;
}

/// The parts of the experiment that the launch needs.
struct WorkerNeeds {
  Backend backend = Backend::automatic;
  /// The multiply-adds of a rank's step; measuring communication needs no threads.
  std::int64_t multiply_adds = 0;
};

int start_workers(const CommandLine& options, const WorkerNeeds& needs,
                  const std::filesystem::path& program, int argc, char** argv) {
  Place first = place_of_first_worker(options);
  const int workers = first.local_world_size;
  if (kUsesGpus) check_gpus(needs.backend, workers, count_gpus(process_environment));
  read_run_token(process_environment);  // a mistake in it is told once
  if (first.world_size == workers && workers > 1) make_own_run_token();
  std::optional<ReservedPort> port;  // the port is reserved until rank 0 listens there
  if (first.listener.port == 0) first.listener.port = port.emplace().number();
  const int threads = useful_threads(count_cores(), workers, needs.multiply_adds);
  return run_workers(first, program, {argv, argv + argc}, threads);
}

int work(const CommandLine& options, const std::optional<Place>& place, int argc, char** argv) {
  WorkerNeeds needs;
  if (options.comm) {
    needs.backend = options.comm->backend;
  } else {
    const Experiment experiment = read_experiment(options.experiment);
    const RankCount ranks = ranks_of(place ? *place : place_of_first_worker(options));
    if (!place)
      check_machines(experiment, options.experiment, options.distributed_nodes.value_or(1));
    check_ranks(experiment, options, ranks);
    needs = {experiment.distributed.backend, experiment.own->multiply_adds_per_batch(ranks)};
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
int roll_out(const CommandLine& options, char** argv) {
  const Experiment experiment = read_experiment(options.experiment);
  if (!experiment.own->has_episodes()) refuse_rollout(options.experiment);
  if (*options.rollout->policy == PolicyKind::checkpoint) become(worker_program(), argv);
  experiment.own->show_episode(*options.rollout);
  return kTrained;
}

void print_version() {
  fmt::print("dtool-trainer {} (LibTorch {}, backends {})\n", dtool::killfiles::dtool_version(),
             TORCH_VERSION, kBackends);
}

/// What dtool asks before it starts a trainer on a host.
int check_itself() {
  print_version();
  const auto missing = missing_libraries(worker_program());
  if (missing.empty()) return kTrained;
  fmt::print("missing: {}\n", fmt::join(missing, ", "));
  return kFailed;
}

int run(int argc, char** argv) {
  const CommandLine options = parse_command_line(argc, argv);
  if (options.action == Action::help) {
    fmt::print("{}", usage_text(options));
    return kTrained;
  }
  if (options.action == Action::version) {
    print_version();
    return kTrained;
  }
  if (options.action == Action::self_check) return check_itself();
  if (options.action == Action::check) {
    const Experiment experiment = read_experiment(options.experiment);
    check_machines(experiment, options.experiment, options.distributed_nodes.value_or(1));
    check_ranks(experiment, options, ranks_of(place_of_first_worker(options)));
    return kTrained;
  }
  if (options.action == Action::rollout) return roll_out(options, argv);
  const auto place = place_from(process_environment, options);
  try {
    return work(options, place, argc, argv);
  } catch (const UsageError&) {
    // The other ranks of this machine read the same file and say the same.
    if (place && place->local_rank != 0 && !has_file_for_last_words()) return kMistake;
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
