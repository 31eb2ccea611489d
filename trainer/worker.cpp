// SPDX-License-Identifier: MIT
// One rank. dtool-trainer starts it with its own arguments; the environment tells its place in the
// run.
#include "trainer/worker.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/utils.h>
#include <torch/version.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "killfiles/version.h"
#include "trainer/comm/comm.h"
#include "trainer/comm/links.h"
#include "trainer/launch/requests.h"
#include "trainer/launch/workers.h"
#include "trainer/ranks/process_group.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/ranks/request_exchange.h"
#include "trainer/settings/command_line.h"
#include "trainer/settings/experiment.h"
#include "trainer/settings/toml_reader.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/checkpoint_writer.h"
#include "trainer/training/training.h"

namespace dtool::trainer {
namespace {

/// Ends this process because another rank is gone. At once: destructors would wait for it. Where
/// this rank was terminated, so were the others, and nothing has failed. Several threads may find
/// out: the first one's words count, and the others wait for the end.
[[noreturn]] void stop_for_others(const std::string& reason) {
  static std::mutex first;
  first.lock();
  if (!is_terminated()) say_last_words(reason);
  finish_writing(kTerminationGrace);
  end_if_terminated();
  std::_Exit(kOthersFailed);
}

/// For threads beside training.
void stop_unless_it_ends(const std::string& reason) {
  if (!answers_termination()) stop_for_others(reason);
}

void print_settings(const Experiment& experiment, const CommandLine& options,
                    const Meeting& meeting, Backend backend) {
  const int machines = count_machines(meeting.members);
  const auto given = [](bool is_given) { return is_given ? Origin::given : Origin::by_default; };
  std::vector<Setting> settings = experiment.settings;
  settings.push_back({"seed", fmt::format("{}", options.seed), given(options.seed != 0)});
  settings.push_back({"output_dir", options.output_dir.string(),
                      given(options.output_dir != CommandLine{}.output_dir)});
  if (options.checkpoint) settings.push_back({"checkpoint", *options.checkpoint, Origin::given});
  const auto by_ranks = experiment.own->settings_on({meeting.place.world_size, machines});
  settings.insert(settings.end(), by_ranks.begin(), by_ranks.end());
  settings.push_back({"learning rate after scaling",
                      fmt::format("{}", scaled_learning_rate(experiment.optimizer.learning_rate,
                                                             experiment.optimizer.scaling,
                                                             meeting.place.world_size)),
                      Origin::given});
  fmt::print(
      "dtool-trainer {} (LibTorch {}): {} rank{} on {} machine{}, {}, {} thread{} a rank\n{}",
      dtool::killfiles::dtool_version(), TORCH_VERSION, meeting.place.world_size,
      meeting.place.world_size == 1 ? "" : "s", machines, machines == 1 ? "" : "s",
      backend == Backend::nccl ? "NCCL on GPUs" : "gloo on CPUs", at::get_num_threads(),
      at::get_num_threads() == 1 ? "" : "s",
      settings_table(settings, options.shows_defaults ? Shown::all : Shown::given));
  std::fflush(stdout);
}

/// The algorithms of our own are as much part of a group as its backend, but only training asks
/// for them.
void link_for_gradients(Group& group, const Meeting& meeting, const DistributedSettings& settings) {
  if (!sums_by_links(settings.all_reduce, group.device, group.size)) return;
  collectively([&] {
    group.gradient_sum =
        std::make_shared<GradientSum>(meeting, settings.all_reduce, settings.collective_timeout);
  });
}

/// The task of the ranks, and what it needs.
struct Job {
  Backend backend;
  std::chrono::seconds timeout;        ///< the time limit of a collective operation
  std::chrono::seconds heartbeat;      ///< how long a rank may be silent
  std::function<void(Backend)> begin;  ///< called before the ranks are connected: may take its time
  std::function<void(Group&)> work;
};

Job training_job(Experiment& experiment, const CommandLine& options, const Meeting& meeting) {
  return {experiment.distributed.backend, experiment.distributed.collective_timeout,
          experiment.distributed.heartbeat_timeout,
          [&](Backend backend) {
            // Another launcher may have chosen the machines.
            check_machines(experiment, options.experiment, count_machines(meeting.members));
            if (meeting.place.rank == 0) print_settings(experiment, options, meeting, backend);
            runner_of(experiment).prepare(experiment, meeting);
          },
          [&](Group& group) {
            link_for_gradients(group, meeting, experiment.distributed);
            torch::manual_seed(options.seed);
            runner_of(experiment).run({experiment, options, meeting, group});
          }};
}

Job comm_job(const CommOptions& options, const Meeting& meeting) {
  return {options.backend, kCommTimeout,
          std::chrono::seconds(standard_heartbeat_timeout(process_environment)), [](Backend) {},
          [&](const Group& group) { run_comm(options, meeting, group); }};
}

/// This rank's message if it cannot continue without another one.
std::string blame_others(const Meeting& meeting, const std::string& error) {
  return fmt::format("{}: {}", to_string(meeting.me()), error);
}

/// Every rank fails alike, and none ends before rank 0 has written its checkpoints: where a rank
/// ends, its machine ends the others.
void leave_after(RequestExchange& requests) {
  try {
    requests.leave();
  } catch (
      const std::exception&) {  // the store has gone with rank 0, which is all that was awaited
    requests.stop();
  }
}

/// `group` outlives the job, since a group's destructor waits for operations that may never end.
int do_job(const Job& job, const Meeting& meeting, std::optional<RequestExchange>& requests,
           std::optional<Group>& group) {
  try {
    const Backend backend = choose_backend(job.backend);
    job.begin(backend);
    group = make_group(meeting, backend, job.timeout);
    job.work(*group);
    if (requests) collectively([&] { requests->leave(); });
    return kTrained;
  } catch (const UsageError& mistake) {
    say_last_words(mistake.what(), mistake.hint);
    if (requests) requests->announce(mistake.what());
    return kMistake;
  } catch (const CollectiveFailed& problem) {
    if (meeting.place.world_size == 1) throw;
    const auto first = requests ? requests->find_first_failure() : std::nullopt;
    if (requests && !first) requests->announce(problem.what());
    stop_for_others(blame_others(meeting, first.value_or(problem.what())));
  } catch (const RunFailed& problem) {
    say_last_words(problem.what());
    if (requests) leave_after(*requests);
    // To another launcher it is a failure as any.
    return has_file_for_last_words() ? kRunFailed : kFailed;
  } catch (const std::exception& problem) {
    const std::string reason = first_line(problem);
    say_last_words(reason);
    if (requests) requests->announce(reason);
    return kFailed;
  }
}

int work(int argc, char** argv) {
  const CommandLine options = parse_command_line(argc, argv);
  std::optional<Experiment> experiment;
  if (!options.comm) experiment = read_experiment(options.experiment);
  if (options.rollout) {  // an episode, alone: this is no rank
    runner_of(*experiment).show_episode(*experiment, options);
    return kTrained;
  }
  const auto place = place_from(process_environment, options);
  if (!place) throw UsageError("dtool-trainer-worker is started by dtool-trainer, not by hand");
  // gloo writes into sockets with writev: a peer that is gone is to be an error of the operation,
  // and not this process's end.
  if (place->world_size > 1) std::signal(SIGPIPE, SIG_IGN);
  const Meeting meeting = meet(*place, options.rendezvous_timeout);
  const Job job =
      options.comm ? comm_job(*options.comm, meeting) : training_job(*experiment, options, meeting);
  std::optional<Group> group;
  std::optional<RequestExchange> requests;
  std::optional<UncaughtExceptions> uncaught;  // NCCL's, as a rule
  if (place->world_size > 1) {
    requests.emplace(meeting, job.heartbeat, stop_unless_it_ends);
    uncaught.emplace(
        [&meeting](const std::string& error) { stop_for_others(blame_others(meeting, error)); });
  }
  const int code = do_job(job, meeting, requests, group);
  if (code != kTrained) std::_Exit(code);
  return code;
}

std::function<void(const std::string&)> stop_process;
std::terminate_handler former_handler = nullptr;

std::string uncaught_message() {
  const auto problem = std::current_exception();
  if (!problem) return "std::terminate was called";
  try {
    std::rethrow_exception(problem);
  } catch (const std::exception& exception) {
    return first_line(exception);
  } catch (...) {
    return "an exception of an unknown kind";
  }
}

[[noreturn]] void handle() {
  stop_process(uncaught_message());
  std::abort();
}

}  // namespace

int run_worker(int argc, char** argv) {
  ignore_checkpoint_signal();
  try {
    return work(argc, argv);
  } catch (const UsageError& mistake) {
    say_last_words(mistake.what(), mistake.hint);
    return kMistake;
  } catch (const OtherRankFailed& problem) {
    say_last_words(problem.what());
    return kOthersFailed;
  } catch (const std::exception& problem) {
    say_last_words(first_line(problem));
    return kFailed;
  }
}

// std::terminate calls the handler that is set here.

UncaughtExceptions::UncaughtExceptions(std::function<void(const std::string&)> stop) {
  stop_process = std::move(stop);
  former_handler = std::set_terminate(handle);
}

UncaughtExceptions::~UncaughtExceptions() {
  std::set_terminate(former_handler);
}

}  // namespace dtool::trainer
