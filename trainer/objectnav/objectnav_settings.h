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

/// Who has `ObjectNavSettings::samplers`, and counts as a node of the tutorial: a machine, whose
/// ranks share them, or a rank.
enum class SamplersPer { machine, rank };

struct ObjectNavSettings : WorkloadSettings {
  Rhythm rhythm() const override;
  void check_ranks(const RankCount& ranks) const override;
  std::vector<Setting> settings_on(const RankCount& ranks) const override;
  /// For one mini-batch.
  std::int64_t multiply_adds_per_batch(const RankCount& ranks) const override;
  bool has_episodes() const override { return true; }
  void show_episode(const RolloutOptions& options) const override;

  SamplersPer samplers_per{};
  std::int64_t samplers{};  ///< environments of each machine, or of each rank
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

/// The share of a rank that has `ranks_before` lower ranks on its machine, which has `ranks` in
/// all: how many samplers. They differ by at most one.
std::int64_t count_samplers(const ObjectNavSettings& settings, std::int64_t ranks_before,
                            std::int64_t ranks);

/// These ranks as nodes. Throws UsageError if a machine has fewer samplers than ranks.
Nodes nodes_of(const ObjectNavSettings& settings, const RankCount& ranks);

/// The pipeline on these nodes. Throws UsageError.
Pipeline plan_pipeline(const ObjectNavSettings& settings, const Nodes& nodes);

}  // namespace dtool::trainer
