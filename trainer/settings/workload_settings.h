// SPDX-License-Identifier: MIT
// The settings of one workload, and what a launch needs to know about it. This is the part of a
// workload without LibTorch; training/workload.h has the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

struct Experiment;
struct RolloutOptions;

enum class HasEpochs { no, yes };

/// How often a run writes a log line and a checkpoint by default.
struct Rhythm {
  HasEpochs epochs = HasEpochs::yes;
  std::int64_t checkpoint_steps = 0;  ///< 0: only epochs count
  std::int64_t log_steps = 100;
};

/// The ranks of a run, evenly on its machines.
struct RankCount {
  std::int64_t ranks = 1;
  std::int64_t machines = 1;

  /// On the machine that has most.
  std::int64_t on_a_machine() const { return (ranks + machines - 1) / machines; }
};

/// Each workload's folder derives its own struct.
struct WorkloadSettings {
  virtual ~WorkloadSettings() = default;

  virtual Rhythm rhythm() const { return {}; }

  /// Throws UsageError if this workload cannot run on these ranks.
  virtual void check_ranks(const RankCount& /*ranks*/) const {}

  /// The settings that result for these ranks, for the settings table.
  virtual std::vector<Setting> settings_on(const RankCount& /*ranks*/) const { return {}; }

  /// Forward multiply-adds of the largest batch of one of these ranks: decides how many threads are
  /// useful.
  virtual std::int64_t multiply_adds_per_batch(const RankCount& ranks) const = 0;

  /// Whether there are episodes to show (`dtool-trainer rollout`).
  virtual bool has_episodes() const { return false; }

  /// Plays and shows an episode with a policy that needs no network.
  virtual void show_episode(const RolloutOptions& /*options*/) const {}
};

/// How a workload folder reads its settings.
struct WorkloadReader {
  /// Reads its own tables and `experiment.optimizer`. Throws UsageError.
  std::unique_ptr<WorkloadSettings> (*read)(TomlReader& reader, Experiment& experiment);

  /// Tables and keys that only this folder's workloads have; a file with another workload gets a
  /// message that says so.
  std::vector<std::string> own_keys;
};

/// Reads `workload` and its settings into `experiment`. Throws UsageError.
void read_workload(TomlReader& reader, Experiment& experiment);

}  // namespace dtool::trainer
