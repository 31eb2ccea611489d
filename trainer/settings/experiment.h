// SPDX-License-Identifier: MIT
// The content of an experiment file: the contract of docs/experiment.md as plain structs. Settings
// of a single workload are in that workload's own struct.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

// Environment variables behind a seam, so that tests can supply their own.

/// Looks up an environment variable.
using Environment = std::function<std::optional<std::string>(const std::string&)>;

/// The real environment.
std::optional<std::string> process_environment(const std::string& name);

// The settings of one workload, and what a launch needs to know about it. This is the part of a
// workload without LibTorch; training/training.h has the other.

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

/// How the learning rate grows with the number of ranks.
enum class Scaling { none, linear, sqrt };

enum class OptimizerKind { adam, adamw, sgd, lamb };

enum class Backend { automatic, gloo, nccl };

/// How the ranks do a collective operation, such as the sum of gradients.
enum class Way {
  automatic,  ///< the fastest for the number of bytes
  library,    ///< by gloo or NCCL, through c10d
  links,      ///< a message over our links
  // Algorithms of our own for all-reduce, made of messages:
  ring,
  pairwise,
  halving_doubling,
  doubling,
};

struct OptimizerSettings {
  OptimizerKind kind{};
  double learning_rate{};
  Scaling scaling{};
  double beta1{};     ///< all but sgd
  double beta2{};     ///< all but sgd
  double epsilon{};   ///< all but sgd
  double momentum{};  ///< sgd
  double weight_decay{};
  bool decays_vectors = true;  ///< whether biases and the scales of norms decay, too
  double clip_norm{};          ///< limit for the norm of all gradients together; 0: not clipped
};

/// Steps are those that the workload counts: the optimizer's, or experience.
struct CheckpointSettings {
  std::int64_t every_epochs{};  ///< 0: none
  std::int64_t every_steps{};   ///< 0: none
  std::int64_t keep{};          ///< how many of the newest checkpoints stay
  bool best{};                  ///< also keep the one with the best score
};

struct DistributedSettings {
  Backend backend{};
  Way all_reduce{};  ///< any but `links`
  std::chrono::seconds collective_timeout{};
  std::chrono::seconds heartbeat_timeout{};
};

struct Experiment {
  std::string workload;                   ///< the word in the file
  std::unique_ptr<WorkloadSettings> own;  ///< the settings that only this workload has
  std::optional<std::int64_t> distributed_nodes;
  OptimizerSettings optimizer;
  CheckpointSettings checkpoint;
  DistributedSettings distributed;
  std::int64_t log_every_steps{};  ///< the steps between two lines, as the workload counts steps
  bool log_tensorboard{};
  std::vector<Setting> settings;  ///< every key above, as shown in the settings table
};

/// The default of `distributed.heartbeat_timeout_seconds`: under `dtool run` as long as a machine
/// may be silent (--lost_after), but not less than 5 s; else 60 s.
std::int64_t standard_heartbeat_timeout(const Environment& environment);

/// Reads and checks an experiment. Throws UsageError with file, line and key.
Experiment read_experiment(const std::filesystem::path& file);

/// Defaults of [optimizer] for a workload.
struct OptimizerStandards {
  double learning_rate = 1e-3;  ///< the learning rate of adam and adamw
  double clip_norm = 0;
  std::string why_no_scaling = {};  ///< empty: `optimizer.scale_learning_rate` is allowed
};

/// Throws UsageError if the experiment is for another number of machines. `file` names it.
void check_machines(const Experiment& experiment, const std::filesystem::path& file, int machines);

/// For a workload's reader, since the tables are read in the order in which they are shown. Throws
/// UsageError.
OptimizerSettings read_optimizer(TomlReader& reader, const OptimizerStandards& standards = {});

/// `learning_rate` on `world_size` ranks.
double scaled_learning_rate(double learning_rate, Scaling scaling, int world_size);

}  // namespace dtool::trainer
