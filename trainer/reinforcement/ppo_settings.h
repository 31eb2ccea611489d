// SPDX-License-Identifier: MIT
// How distributed proximal policy optimisation gathers experience and learns from it. The numbers
// come from an experiment's tables [ppo], [pipeline] and [validation].
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/reinforcement/policy_settings.h"
#include "trainer/settings/experiment.h"
#include "trainer/settings/toml_reader.h"
#include "trainer/settings/train_settings.h"

namespace dtool::trainer {

// The stages of distributed DD-PPO and their learning rate. Either an experiment lists them, or
// they are two, after AllenAct's tutorial on training across several nodes: first small batches,
// then large ones with a larger rate, where the number of nodes decides how long rollouts are.

struct DdPpoSettings;

/// What more nodes make of one node's rollout: they share its steps, or each has a whole one, as in
/// the tutorial.
enum class Rollouts { shared, whole };

/// How to learn from the experience of one rollout.
struct UpdateSettings {
  std::int64_t num_mini_batch = 1;  ///< parts into which a rank's samplers are divided
  std::int64_t update_repeats = 4;  ///< passes over all mini-batches
  std::int64_t num_steps = 128;     ///< the steps of a rollout, for each sampler
  std::int64_t advance_every = 0;   ///< rollouts until all samplers go to other scenes; 0: never
};

/// The weights of the loss's parts, and how far a policy may move.
struct LossWeights {
  double clip_param = 0.1;  ///< epsilon of https://arxiv.org/abs/1707.06347, equation 7
  double value_loss_coef = 0.5;
  double entropy_coef = 0.01;

  bool operator==(const LossWeights&) const = default;
};

/// A stage as an experiment lists it. The learning rate's factor goes from the first to the last in
/// a line.
struct ListedStage {
  std::int64_t steps = 0;
  UpdateSettings update;
  LossWeights loss;
  double first_factor = 1;
  double last_factor = 1;
};

/// Lengths are in experience steps of all ranks together.
struct PipelineSettings {
  std::int64_t steps = 300'000'000;  ///< the steps of the whole run
  /// The steps of the first stage; 0: there is no first stage.
  std::int64_t small_batch_steps = 30'000'000;
  double transition_steps_per_node = 2e6 / 3;  ///< times the growth of the batches: the steps
                                               ///< over which the learning rate grows
  Rollouts rollouts = Rollouts::shared;
  std::vector<std::int64_t> rollout_steps = {};  ///< each stage's; empty: they follow the nodes
  /// Of the last stage; absent: it follows the batches.
  std::optional<double> learning_rate_factor = {};
  std::vector<ListedStage> listed = {};  ///< empty: the stages follow from all of the above
};

struct PipelineStage {
  std::int64_t end = 0;  ///< the stage is over when this many experience steps have been collected
  UpdateSettings update;
  LossWeights loss;
};

struct Pipeline {
  std::vector<PipelineStage> stages;  ///< one or more
  double learning_rate_factor = 1;    ///< the last stage's, apart from the fall towards 0
  /// The learning rate's factor; `learning_rate_factor` takes the experience steps so far.
  ScheduleSettings schedule;

  /// The stage after `steps` steps; the last stage if all are over.
  std::size_t stage_at(std::int64_t steps) const;
  /// The steps of the stage with the longest rollouts.
  std::int64_t longest_rollout() const;
  bool is_over(std::int64_t steps) const { return steps >= stages.back().end; }
};

/// The tutorial's nodes: machines or ranks.
struct Nodes {
  std::int64_t count = 1;
  std::int64_t samplers = 60;        ///< the samplers of each node
  std::int64_t smallest_share = 60;  ///< the fewest samplers that one of a node's ranks has
};

/// Nodes that share rollouts never make them shorter than this: a gradient through few steps
/// teaches the memory little, and an exchange costs as much as for a long rollout.
inline constexpr std::int64_t kLeastRolloutSteps = 16;

/// The pipeline of a run on `nodes`, whose samplers together are `nodes.count` times one node's.
///
/// **Shared rollouts.** In the first stage the nodes together collect and learn from as much as one
/// node would: a rollout has the base's steps divided by the nodes. So the updates are one node's,
/// and each takes a shorter time. In the second stage a rollout has the base's steps divided by the
/// square root of the nodes: the batches grow with that root. An update takes a time that the nodes
/// divide, and one for the exchange, which they do not. The batch that learns soonest then grows
/// with the root of the nodes. No rollout gets shorter than kLeastRolloutSteps; with that many
/// nodes the batches grow instead. All stages have the base's mini-batches and repeats.
///
/// **Whole rollouts** are the tutorial's: each has the base's steps. The first stage makes as many
/// updates for the same experience as one node would. For this, the number of mini-batches is
/// multiplied by the largest divisor of a node's samplers that exceeds neither half of them nor the
/// number of nodes, so that all mini-batches have the same size. Where ranks share a node's
/// samplers, it is also so small that each of them has a part of every mini-batch. The repeats are
/// multiplied by the rest of the nodes, rounded up. The second stage has the base's numbers; its
/// batches are larger by the number of nodes.
///
/// The learning rate falls linearly towards 0 at the end of the run. From 2 % after the first
/// stage's end it grows, over the transition, to `learning_rate_factor` times that line: the square
/// root of how many times larger the last stage's batches are than one node's.
///
/// Throws UsageError if the pieces are longer than the run, if a rank has fewer samplers than
/// mini-batches, or if `rollout_steps` are not as many as the stages.
Pipeline plan_pipeline(const PipelineSettings& settings, const UpdateSettings& base,
                       const Nodes& nodes, const LossWeights& loss = {});

/// The stages as they are listed, on these nodes. Throws UsageError if a rank has fewer samplers
/// than mini-batches.
Pipeline plan_listed(const std::vector<ListedStage>& listed, const Nodes& nodes);

/// The share of a rank that has `ranks_before` lower ranks on its machine, which has `ranks` in
/// all: how many samplers. They differ by at most one.
std::int64_t count_samplers(const DdPpoSettings& settings, std::int64_t ranks_before,
                            std::int64_t ranks);

/// These ranks as nodes. Throws UsageError if a machine has fewer samplers than ranks.
Nodes nodes_of(const DdPpoSettings& settings, const RankCount& ranks);

/// The pipeline on these nodes. Throws UsageError.
Pipeline plan_pipeline(const DdPpoSettings& settings, const Nodes& nodes);

/// PPO with generalized advantage estimation, distributed over ranks as in DD-PPO. The defaults are
/// those of AllenAct's PPOConfig and of its ObjectNav pipelines with DD-PPO.
struct PpoSettings : UpdateSettings, LossWeights {
  double gamma = 0.99;       ///< discount of a step
  double gae_lambda = 0.95;  ///< https://arxiv.org/abs/1506.02438, equation 16
  bool use_clipped_value_loss = true;
  bool normalise_returns = false;
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

/// The settings of a workload that learns by DD-PPO; each adds its environment.
struct ReinforcementSettings : WorkloadSettings {
  Rhythm rhythm() const override;
  void check_ranks(const RankCount& ranks) const override;
  std::vector<Setting> settings_on(const RankCount& ranks) const override;
  bool has_episodes() const override { return true; }
  /// For one mini-batch.
  std::int64_t multiply_adds_per_batch(const RankCount& ranks) const override;
  /// The environments', as far as the experiment tells.
  virtual EnvironmentSpec assumed_spec() const = 0;

  DdPpoSettings learning;
  PolicySettings policy;
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
