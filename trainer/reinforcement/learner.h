// SPDX-License-Identifier: MIT
// The passes over a rollout: computes PPO's gradients mini-batch by mini-batch, averaged over the
// ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/ranks/process_group.h"
#include "trainer/reinforcement/ppo_loss.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/reinforcement/rollout.h"
#include "trainer/report/progress_log.h"
#include "trainer/training/data_parallel.h"
#include "trainer/training/graphed_step.h"
#include "trainer/training/optimizer.h"

namespace dtool::trainer {

// The results of the updates since the last line of the log, over all ranks.

/// Sums, so that they can be added up over ranks and updates.
struct ExperienceSums {
  double steps = 0;
  EpisodeSums episodes;   ///< the sums over the episodes that ended
  double rollouts = 0;    ///< the rollouts of all ranks
  double cut_short = 0;   ///< how many of them were cut short because of stragglers
  double collecting = 0;  ///< seconds of all ranks, spent on rollouts
  double learned = 0;     ///< steps of the following sums; each step counts once per pass
  PpoSums losses;

  void operator+=(ExperienceSums other);
};

/// A collective operation.
ExperienceSums sum_over_ranks(const Group& group, ExperienceSums sums);

/// The loss of the steps that were learned from, with the weights of PpoLoss.
double mean_loss(const ExperienceSums& sums, const LossWeights& weights);

/// How well the agents do, and other values worth a curve: means over episodes, steps or rollouts.
/// `names` are those of the episodes' scores. Means over nothing are left out. `seconds` are those
/// of all ranks.
Scores scores_of(const ExperienceSums& sums, const std::vector<std::string>& names);
Scores details_of(const ExperienceSums& sums, double seconds);

/// The result of an update.
struct Learned {
  std::int64_t steps = 0;  ///< the steps of experience, over all ranks
  int request = 0;         ///< the signal that rank 0 received; 0: none
  ExperienceSums sums;     ///< this rank's losses and steps
};

class Learner {
 public:
  /// Copies rank 0's weights to all ranks.
  Learner(const Group& group, const Policy& policy, Optimizer& optimizer,
          const PpoSettings& settings, std::uint64_t seed, std::int64_t first_sampler,
          GraphedStep::GiveUp note);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  /// From now on the loss has these weights; they are those of the settings at first.
  void weigh(const LossWeights& weights);

  /// Learns from the rollouts of all ranks together, `update.update_repeats` times. `number` is the
  /// run's number of this rollout, from 0. Rank 0's `request` reaches all ranks. A collective
  /// operation.
  Learned learn(const Rollout& rollout, std::int64_t number, const UpdateSettings& update,
                double learning_rate, int request);

 private:
  struct Samples;
  std::vector<at::Tensor> take(const Rollout& rollout, const at::Tensor& advantages,
                               const at::Tensor& returns);
  void step(std::vector<at::Tensor> inputs, const at::Tensor& steps, double learning_rate);
  void compute(const std::vector<at::Tensor>& inputs);

  Group group_;
  const Policy& policy_;
  Optimizer& optimizer_;
  DataParallel parallel_;
  PpoSettings settings_;
  std::uint64_t seed_;
  std::int64_t first_sampler_;
  at::Tensor sums_;  ///< the sums of the update's losses, in the form of `PpoLoss::sums`
  std::optional<GraphedStep> graphed_;  ///< the graphed step, where steps are played back
};

}  // namespace dtool::trainer
