// What an experiment with workload = "objectnav" says in tables of its own; read by experiment.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "trainer/objectnav/environment_settings.h"
#include "trainer/reinforcement/pipeline.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/reinforcement/rollout_options.h"
#include "trainer/settings/toml_reader.h"

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

struct ObjectNavSettings {
  std::int64_t samplers{};  ///< environments of a rank
  EnvironmentSettings environment;
  std::int64_t embedding{};  ///< values that an observation becomes
  std::int64_t hidden{};     ///< values of the memory
  PpoSettings ppo;
  PipelineSettings pipeline;
  ValidationSettings validation;
};

/// Reads [environment], [model], [ppo], [pipeline] and [validation], and refuses the tables of
/// supervised training. Throws UsageError.
ObjectNavSettings read_objectnav(TomlReader& reader);

/// For the other workloads: UsageError where the file has a table that only objectnav has.
void refuse_objectnav(const TomlReader& reader);

/// The seed of a rollout's episode.
std::uint64_t rollout_seed(const RolloutOptions& options, const ObjectNavSettings& settings);

/// The pipeline on so many ranks, each of which is a node of the tutorial's: it has `samplers` of
/// its own. Throws UsageError.
Pipeline plan_pipeline(const ObjectNavSettings& settings, std::int64_t ranks);

/// Forward multiply-adds of one rank's largest mini-batch.
std::int64_t multiply_adds_per_batch(const ObjectNavSettings& settings);

}  // namespace dtool::trainer
