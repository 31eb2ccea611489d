// What an experiment says of its workload alone, and what a launch has to know of it. The half of a
// workload that needs no LibTorch; training/workload.h has the other.
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

/// How often a run writes a line and a checkpoint where the file does not say.
struct Rhythm {
  HasEpochs epochs = HasEpochs::yes;
  std::int64_t checkpoint_steps = 0;  ///< 0: epochs alone decide
  std::int64_t log_steps = 100;
};

/// Each workload's folder derives its own.
struct WorkloadSettings {
  virtual ~WorkloadSettings() = default;

  virtual Rhythm rhythm() const { return {}; }

  /// Throws UsageError if so many ranks cannot do this.
  virtual void check_ranks(std::int64_t /*ranks*/) const {}

  /// What the settings come to on so many ranks, for the settings table.
  virtual std::vector<Setting> settings_on(std::int64_t /*ranks*/) const { return {}; }

  /// Forward multiply-adds of a rank's largest batch: decides how many threads are a gain.
  virtual std::int64_t multiply_adds_per_batch() const = 0;

  /// Whether there are episodes to show (`dtool-trainer rollout`).
  virtual bool has_episodes() const { return false; }

  /// Plays and shows an episode by a policy that needs no network.
  virtual void show_episode(const RolloutOptions& /*options*/) const {}
};

/// How a folder's settings are read.
struct WorkloadReader {
  /// Reads the tables of its own and `experiment.optimizer`. Throws UsageError.
  std::unique_ptr<WorkloadSettings> (*read)(TomlReader& reader, Experiment& experiment);

  /// Tables and keys that only this folder's workloads have: another one's file is told so.
  std::vector<std::string> own_keys;
};

/// Reads `workload`, and what the file says of it, into `experiment`. Throws UsageError.
void read_workload(TomlReader& reader, Experiment& experiment);

}  // namespace dtool::trainer
