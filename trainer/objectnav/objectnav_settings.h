// SPDX-License-Identifier: MIT
// The tables that only an experiment with workload = "objectnav" has.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/objectnav/environment_settings.h"
#include "trainer/reinforcement/pipeline.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/settings/experiment.h"
#include "trainer/settings/rollout_options.h"
#include "trainer/settings/workload_settings.h"

namespace dtool::trainer {

/// How often the policy is validated in houses of no training run, and on how many episodes.
struct ValidationSettings {
  std::int64_t every_steps{};  ///< experience steps of all ranks; 0: only at the end
  std::int64_t episodes{};
  std::uint64_t seed{};  ///< of the houses and the starts: the same for every run
  /// The output folder of another run, whose checkpoints this run validates instead of training.
  /// May contain `~` and `$NAME`. Empty: this run trains.
  std::string follow;
  std::chrono::seconds patience{};  ///< how long to wait for the next checkpoint there
};

struct ObjectNavSettings : WorkloadSettings {
  Rhythm rhythm() const override;
  void check_ranks(std::int64_t ranks) const override;
  std::vector<Setting> settings_on(std::int64_t ranks) const override;
  /// For one mini-batch.
  std::int64_t multiply_adds_per_batch() const override;
  bool has_episodes() const override { return true; }
  void show_episode(const RolloutOptions& options) const override;

  std::int64_t samplers{};  ///< environments per rank
  EnvironmentSettings environment;
  std::int64_t embedding{};  ///< values of an encoded observation
  std::int64_t hidden{};     ///< values of the memory
  PpoSettings ppo;
  PipelineSettings pipeline;
  ValidationSettings validation;
};

/// The settings of an experiment with this workload.
const ObjectNavSettings& objectnav_of(const Experiment& experiment);

/// The seed of a rollout's episode.
std::uint64_t rollout_seed(const RolloutOptions& options, const ObjectNavSettings& settings);

/// The pipeline on that many ranks. Each rank counts as a node of the tutorial and has its own
/// `samplers`. Throws UsageError.
Pipeline plan_pipeline(const ObjectNavSettings& settings, std::int64_t ranks);

}  // namespace dtool::trainer
