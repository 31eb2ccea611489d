// SPDX-License-Identifier: MIT
// The part of the workload that needs LibTorch: it gives the learner ObjectNav's environments and a
// policy for them, and shows what a trained policy does.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/objectnav/samplers.h"
#include "trainer/objectnav/show_rollout.h"
#include "trainer/reinforcement/actions.h"
#include "trainer/reinforcement/ddppo.h"
#include "trainer/reinforcement/encoded_policy.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/checkpoint_reader.h"
#include "trainer/training/checkpoint_writer.h"
#include "trainer/training/snapshot.h"
#include "trainer/training/training.h"

namespace dtool::trainer {
namespace {

void prepare(Experiment& /*experiment*/, const Meeting& /*meeting*/) {}

EncodedPolicy make_policy(const ObjectNavSettings& settings, at::Device device) {
  return {objectnav_spec(settings.environment.senses), settings.policy, device};
}

void run_objectnav(const Run& run) {
  const ObjectNavSettings& settings = objectnav_of(run.experiment);
  const MakeEnvironments make = [&](EpisodeSet set, std::uint64_t seed, std::int64_t first,
                                    int count) {
    const int threads = set == EpisodeSet::training ? settings.learning.threads : 0;
    return std::make_unique<Samplers>(settings.environment, set, seed, first, count, threads);
  };
  EncodedPolicy policy = make_policy(settings, run.group.device);
  run_ddppo(run, settings.learning, make, policy);
}

/// One agent, with its memory of the episode.
struct Agent {
  EncodedPolicy network;
  const EnvironmentSettings& settings;
  std::uint64_t seed;
  at::Tensor memory = at::zeros({1, network.memory_size()});
  at::Tensor observation = at::empty({1, observation_bytes(settings.senses)}, at::kByte);

  Move choose(const Scene& scene) {
    const c10::NoGradGuard no_gradients;
    observe(settings, scene.house, scene.episode, observation.data_ptr<std::uint8_t>());
    const at::Tensor keep = at::full({1}, scene.episode.steps == 0 ? 0.0F : 1.0F);
    const PolicyOutput seen = network.act(observation, memory, keep);
    memory = seen.memory;
    float action = 0;
    float log_prob = 0;
    sample_actions(seen.logits, objectnav_spec().actions, seed, scene.sampler, scene.episode.steps,
                   &action, &log_prob);
    return static_cast<Move>(static_cast<std::uint8_t>(action));
  }
};

/// The network of `--checkpoint` draws its actions as `validate` does with the same seed, so that
/// episode N is the same as in validation.
void show_episode(const Experiment& experiment, const CommandLine& options) {
  at::set_num_threads(1);  // one agent's network is small
  const ObjectNavSettings& settings = objectnav_of(experiment);
  const auto file = checkpoint_of(options);
  if (file.empty()) {
    throw UsageError(fmt::format("--checkpoint auto: none in {}", checkpoints_of(options).string()),
                     "give the same --output_dir as the earlier training");
  }
  Agent agent{make_policy(settings, at::kCPU), settings.environment,
              rollout_seed(*options.rollout, settings)};
  const Group alone;
  CheckpointReader reader(alone, "", CheckpointFile(file));
  restore_model(reader, agent.network);
  show_rollout(
      *options.rollout, settings.environment, agent.seed,
      [&](const Scene& scene) { return agent.choose(scene); }, "the network of " + file.string());
}

}  // namespace

namespace objectnav {

extern const WorkloadRunner kRunner;
const WorkloadRunner kRunner = {prepare, run_objectnav, show_episode};

}  // namespace objectnav

}  // namespace dtool::trainer
