// SPDX-License-Identifier: MIT
// How distributed proximal policy optimisation gathers experience and learns from it. The numbers
// come from an experiment's tables [ppo], [pipeline] and [validation].
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/reinforcement/pipeline.h"
#include "trainer/settings/experiment.h"
#include "trainer/settings/toml_reader.h"
#include "trainer/settings/train_settings.h"

namespace dtool::trainer {

enum class ClippedValueLoss { no, yes };
enum class NormaliseReturns { no, yes };

/// PPO with generalized advantage estimation, distributed over ranks as in DD-PPO. The defaults are
/// those of AllenAct's PPOConfig and of its ObjectNav pipelines with DD-PPO.
struct PpoSettings : LossWeights {
  std::int64_t num_steps = 128;     ///< steps of a rollout
  std::int64_t num_mini_batch = 1;  ///< parts into which the samplers of a rollout are divided
  std::int64_t update_repeats = 4;  ///< passes over a rollout
  std::int64_t advance_every = 0;   ///< see UpdateSettings
  double gamma = 0.99;              ///< discount of a step
  double gae_lambda = 0.95;         ///< https://arxiv.org/abs/1506.02438, equation 16
  ClippedValueLoss use_clipped_value_loss = ClippedValueLoss::yes;
  NormaliseReturns normalise_returns = NormaliseReturns::no;
  Precision precision = Precision::float32;  ///< the encoders' precision
  /// Once this share of the ranks has finished, the others cut their rollouts short
  /// (https://arxiv.org/abs/1911.00357, section 3); 1: never.
  double preemption_share = 0.6;
  double least_rollout_share = 0.25;  ///< the share of its steps that every rollout has at least
  CudaGraphSetting cuda_graph;        ///< the setting for collecting and for learning
};

/// How often the policy is validated in environments of no training run, and on how many episodes.
struct ValidationSettings {
  std::int64_t every_steps{};         ///< experience steps of all ranks; 0: only at the end
  std::int64_t episodes{};            ///< rounded up to equally many of each environment
  std::int64_t step_limit = 100'000;  ///< an episode that is longer ends the run
  std::int64_t environments{};        ///< those of all ranks; 0: one for each episode
  std::uint64_t seed{};               ///< the seed of the environments: the same for every run
  /// The output folder of another run, whose checkpoints this run validates instead of training.
  /// May contain `~` and `$NAME`. Empty: this run trains.
  std::string follow;
  std::chrono::seconds patience{};  ///< how long to wait for the next checkpoint there

  std::int64_t environments_in_all() const;
  std::int64_t episodes_of_each() const;
};

/// Who has `DdPpoSettings::samplers`, and counts as a node of the tutorial: a machine, whose ranks
/// share them, or a rank.
enum class SamplersPer { machine, rank };

/// All of an experiment's settings for learning by DD-PPO, whatever the environment.
struct DdPpoSettings {
  SamplersPer samplers_per{};
  std::int64_t samplers{};  ///< environments of each machine, or of each rank
  int threads = 0;          ///< threads that step the environments; 0: the caller's own thread does
  PpoSettings ppo;
  PipelineSettings pipeline;
  ValidationSettings validation;
};

/// The settings of a workload that learns by DD-PPO; each adds its environment and its network.
struct ReinforcementSettings : WorkloadSettings {
  Rhythm rhythm() const override;
  void check_ranks(const RankCount& ranks) const override;
  std::vector<Setting> settings_on(const RankCount& ranks) const override;
  bool has_episodes() const override { return true; }

  DdPpoSettings learning;
};

/// Defaults of [validation] for a workload.
struct ValidationStandards {
  std::int64_t episodes = 1000;
  std::int64_t environments = 0;
};

/// Reads the tables [ppo], [pipeline] or [[stage]], [validation] and [optimizer], and of
/// [environment] the samplers and threads. Throws UsageError for values that do not fit, and for
/// tables of learning from samples, which it says do not go together with that `workload`.
DdPpoSettings read_dd_ppo(TomlReader& reader, const std::string& workload,
                          OptimizerSettings& optimizer, const ValidationStandards& standards = {});

}  // namespace dtool::trainer
