// What an experiment with workload = "objectnav" says in tables of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/objectnav/environment_settings.h"
#include "trainer/reinforcement/pipeline.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/reinforcement/rollout_options.h"
#include "trainer/settings/experiment.h"
#include "trainer/settings/workload_settings.h"

namespace dtool::trainer {

/// How often, and on how many episodes, the policy is tried in houses that it was not trained in.
struct ValidationSettings {
  std::int64_t every_steps{};  ///< experience steps of all ranks; 0: at the end only
  std::int64_t episodes{};
  std::uint64_t seed{};  ///< of the houses and the starts: the same for every run
  /// The output folder of another run, whose checkpoints this one validates in place of training;
  /// may hold `~` and `$NAME`; empty: this run trains.
  std::string follow;
  std::chrono::seconds patience{};  ///< how long to wait for the next checkpoint there
};

struct ObjectNavSettings : WorkloadSettings {
  Rhythm rhythm() const override;
  void check_ranks(std::int64_t ranks) const override;
  std::vector<Setting> settings_on(std::int64_t ranks) const override;
  /// Of one mini-batch.
  std::int64_t multiply_adds_per_batch() const override;
  bool has_episodes() const override { return true; }
  void show_episode(const RolloutOptions& options) const override;

  std::int64_t samplers{};  ///< environments of a rank
  EnvironmentSettings environment;
  std::int64_t embedding{};  ///< values that an observation becomes
  std::int64_t hidden{};     ///< values of the memory
  PpoSettings ppo;
  PipelineSettings pipeline;
  ValidationSettings validation;
};

/// Those of an experiment with this workload.
const ObjectNavSettings& objectnav_of(const Experiment& experiment);

/// The seed of a rollout's episode.
std::uint64_t rollout_seed(const RolloutOptions& options, const ObjectNavSettings& settings);

/// The pipeline on so many ranks, each of which is a node of the tutorial's: it has `samplers` of
/// its own. Throws UsageError.
Pipeline plan_pipeline(const ObjectNavSettings& settings, std::int64_t ranks);

}  // namespace dtool::trainer
