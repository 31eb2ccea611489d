// SPDX-License-Identifier: MIT
// The part of workload "ppo" that needs LibTorch: it starts this rank's workers, sees that all
// ranks have the same environments, and gives them and a policy to the learner.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/environments/environment_settings.h"
#include "trainer/reinforcement/ddppo.h"
#include "trainer/reinforcement/encoded_policy.h"
#include "trainer/reinforcement/kept_samplers.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/training.h"

namespace dtool::trainer {
namespace {

const PpoWorkloadSettings& ppo_of(const Experiment& experiment) {
  return dynamic_cast<const PpoWorkloadSettings&>(*experiment.own);
}

/// By default every core has a process, and the rank's own thread takes turns with them.
int count_workers(const Run& run, const WorkerSettings& worker) {
  if (worker.workers > 0) return worker.workers;
  return std::max(1, count_cores() / std::max(1, run.meeting.place.local_world_size));
}

/// Returns when all ranks have started their environments, which may take them differently long.
/// Throws UsageError on a rank whose environments are not rank 0's.
void check_alike(const Group& group, const std::string& name, const WorkerAnswer& answer) {
  if (group.size == 1) return;
  const auto key = [](int rank) { return fmt::format("environments of rank {}", rank); };
  const std::string mine = describe(answer);
  std::string first;
  collectively([&] {
    put(*group.store, key(group.rank), mine);
    for (int i = 0; i < group.size; ++i) group.store->wait({key(i)}, kForAsLongAsItTakes);
    first = text_at(*group.store, key(0));
  });
  if (mine == first) return;
  throw UsageError(
      fmt::format("environment {}: rank {} has {}, but rank 0 has {}", name, group.rank, mine,
                  first),
      "the environments of a run have to be alike: install the same packages on every machine");
}

void run_ppo(const Run& run) {
  const PpoWorkloadSettings& settings = ppo_of(run.experiment);
  const int workers = count_workers(run, settings.worker);
  const bool trains = settings.learning.validation.follow.empty();
  const SamplerRange mine =
      shares_of(run.group.members, settings.learning)[static_cast<std::size_t>(run.group.rank)];
  const auto start = [&](EpisodeSet set, std::uint64_t seed, std::int64_t first, int count) {
    return std::make_unique<ProcessEnvironments>(settings.worker, set, seed, first, count, workers);
  };
  // The policy depends on the environments' spec, so the first ones are started before it is made;
  // the learner gets them when it asks.
  auto started = trains ? start(EpisodeSet::training, run.options.seed, mine.first,
                                static_cast<int>(mine.count))
                        : start(EpisodeSet::validation, settings.learning.validation.seed, 0, 1);
  check_alike(run.group, settings.worker.name, started->answer());
  if (run.group.rank == 0) {
    fmt::print("environment: {}: {}; {} in {} processes\n", settings.worker.name,
               describe(started->answer()), started->count(), started->workers());
  }
  EncodedPolicy policy(started->spec(), settings.policy, run.group.device);
  if (!trains) started.reset();
  const MakeEnvironments make = [&](EpisodeSet set, std::uint64_t seed, std::int64_t first,
                                    int count) -> std::unique_ptr<Environments> {
    if (set == EpisodeSet::training && started) return std::move(started);
    return start(set, seed, first, count);
  };
  run_ddppo(run, settings.learning, make, policy);
}

}  // namespace

namespace environments {

extern const WorkloadRunner kRunner;
const WorkloadRunner kRunner = {[](Experiment&, const Meeting&) {}, run_ppo};

}  // namespace environments

}  // namespace dtool::trainer
