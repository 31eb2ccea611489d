// The passes over a rollout: what PPO's gradients are computed from, mini-batch by mini-batch,
// averaged over the ranks.
#pragma once

#include <cstdint>

#include "trainer/ranks/process_group.h"
#include "trainer/reinforcement/actor_critic.h"
#include "trainer/reinforcement/experience.h"
#include "trainer/reinforcement/pipeline.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/reinforcement/rollout.h"
#include "trainer/training/data_parallel.h"
#include "trainer/training/optimizer.h"

namespace dtool::trainer {

/// What an update has come to.
struct Learned {
  std::int64_t steps = 0;  ///< of experience, over all ranks
  int request = 0;         ///< the signal that rank 0 was asked with; 0: none
  ExperienceSums sums;     ///< this rank's losses and steps
};

class Learner {
 public:
  /// Copies rank 0's weights to all ranks.
  Learner(const Group& group, ActorCritic& policy, Optimizer& optimizer,
          const PpoSettings& settings, std::uint64_t seed, std::int64_t first_sampler);

  /// Learns from this rank's rollout and all others' together, `update.update_repeats` times; it is
  /// the run's rollout number `number`, from 0. Rank 0's `request` reaches all ranks. A collective
  /// operation.
  Learned learn(const Rollout& rollout, std::int64_t number, const UpdateSettings& update,
                double learning_rate, int request);

 private:
  struct Samples;
  void step(const Samples& samples, double steps, double learning_rate, ExperienceSums& sums);

  Group group_;
  ActorCritic& policy_;
  Optimizer& optimizer_;
  DataParallel parallel_;
  PpoSettings settings_;
  std::uint64_t seed_;
  std::int64_t first_sampler_;
};

}  // namespace dtool::trainer
