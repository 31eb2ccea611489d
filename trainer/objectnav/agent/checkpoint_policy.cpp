// SPDX-License-Identifier: MIT
#include "trainer/objectnav/agent/checkpoint_policy.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <memory>

#include "trainer/objectnav/agent/actor_critic.h"
#include "trainer/objectnav/agent/sample_actions.h"
#include "trainer/settings/usage_error.h"
#include "trainer/training/checkpoint_reader.h"
#include "trainer/training/resume.h"
#include "trainer/training/snapshot.h"

namespace dtool::trainer {
namespace {

/// One agent, with its memory of the episode.
struct Agent {
  ActorCritic network;
  std::uint64_t seed;
  at::Tensor memory = at::zeros({1, network.memory_size()});
  at::Tensor observation = at::empty({1, kObservationBytes}, at::kByte);

  Move choose(const Scene& scene) {
    const c10::NoGradGuard no_gradients;
    observe(scene.house, scene.episode, observation.data_ptr<std::uint8_t>());
    const at::Tensor keep = at::full({1}, scene.episode.steps == 0 ? 0.0F : 1.0F);
    const PolicyOutput seen = network.act(observation, memory, keep);
    memory = seen.memory;
    std::uint8_t action = 0;
    float log_prob = 0;
    sample_actions(seen.logits, seed, scene.sampler, scene.episode.steps, &action, &log_prob);
    return static_cast<Move>(action);
  }
};

}  // namespace

CheckpointPolicy read_policy(const ObjectNavSettings& settings, const CommandLine& options,
                             std::uint64_t seed) {
  const auto file = checkpoint_of(options);
  if (file.empty()) {
    throw UsageError(fmt::format("--checkpoint auto: none in {}", checkpoints_of(options).string()),
                     "--output_dir names the folder that the training was given");
  }
  const auto agent = std::make_shared<Agent>(
      Agent{ActorCritic({settings.embedding, settings.hidden}, at::kCPU), seed});
  const Group alone;
  CheckpointReader reader(alone, "", CheckpointFile(file));
  restore_model(reader, agent->network);
  return {[agent](const Scene& scene) { return agent->choose(scene); }, file.string()};
}

}  // namespace dtool::trainer
