// SPDX-License-Identifier: MIT
// The part of the workload that needs LibTorch.
#include <ATen/Parallel.h>

#include "trainer/objectnav/agent/ddppo.h"
#include "trainer/objectnav/agent/follow_checkpoints.h"
#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/objectnav/show_rollout.h"
#include "trainer/training/training.h"

namespace dtool::trainer {
namespace {

void prepare(Experiment& /*experiment*/, const Meeting& /*meeting*/) {}

void run_objectnav(const Run& run) {
  const ObjectNavSettings& settings = objectnav_of(run.experiment);
  if (settings.validation.follow.empty()) {
    train_ddppo(run, settings);
  } else {
    follow_checkpoints(run, settings);
  }
}

void show_episode(const Experiment& experiment, const CommandLine& options) {
  at::set_num_threads(1);  // one agent's network is small
  const ObjectNavSettings& settings = objectnav_of(experiment);
  const auto seed = rollout_seed(*options.rollout, settings);
  const CheckpointPolicy policy = read_policy(settings, options, seed);
  show_rollout(*options.rollout, settings.environment, seed, policy.choose,
               "the network of " + policy.file);
}

}  // namespace

namespace objectnav {

extern const WorkloadRunner kRunner;
const WorkloadRunner kRunner = {prepare, run_objectnav, show_episode};

}  // namespace objectnav

}  // namespace dtool::trainer
