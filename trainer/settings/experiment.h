// What an experiment file says: the contract of docs/experiment.md as plain structs. What only one
// workload has is in that workload's own settings.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/settings/toml_reader.h"
#include "trainer/settings/workload_settings.h"

namespace dtool::trainer {

/// How the learning rate grows with the number of ranks.
enum class Scaling { none, linear, sqrt };

enum class OptimizerKind { adam, adamw, sgd };

enum class Backend { automatic, gloo, nccl };

/// How gradients are added up over the ranks: by the backend, or by an algorithm of our own.
enum class AllReduce { automatic, library, ring, pairwise, halving_doubling, doubling, tree };

struct OptimizerSettings {
  OptimizerKind kind{};
  double learning_rate{};
  Scaling scaling{};
  double beta1{};     ///< adam, adamw
  double beta2{};     ///< adam, adamw
  double epsilon{};   ///< adam, adamw
  double momentum{};  ///< sgd
  double weight_decay{};
  double clip_norm{};  ///< of all gradients together; 0: not clipped
};

/// Steps are those that the workload counts: the optimizer's, or experience.
struct CheckpointSettings {
  std::int64_t every_epochs{};  ///< 0: none
  std::int64_t every_steps{};   ///< 0: none
  std::int64_t keep{};          ///< how many of the newest stay
  bool best{};                  ///< keep the one with the best score, too
};

struct DistributedSettings {
  Backend backend{};
  AllReduce all_reduce{};
  std::chrono::seconds collective_timeout{};
};

struct Experiment {
  std::string workload;                   ///< the word of the file
  std::unique_ptr<WorkloadSettings> own;  ///< what only this workload has
  std::optional<std::int64_t> distributed_nodes;
  OptimizerSettings optimizer;
  CheckpointSettings checkpoint;
  DistributedSettings distributed;
  std::int64_t log_every_steps{};  ///< as the workload counts them
  bool log_tensorboard{};
  std::vector<Setting> settings;  ///< every key above as the settings table shows it
};

/// Reads and checks an experiment. Throws UsageError with file, line and key.
Experiment read_experiment(const std::filesystem::path& file);

/// What [optimizer] has for a workload where the file does not say.
struct OptimizerStandards {
  double learning_rate = 1e-3;  ///< of adam and adamw
  double clip_norm = 0;
  std::string why_no_scaling = {};  ///< empty: `optimizer.scale_learning_rate` is read
};

/// For a workload's reader, since the tables are read in the order in which they are shown. Throws
/// UsageError.
OptimizerSettings read_optimizer(TomlReader& reader, const OptimizerStandards& standards = {});

/// `learning_rate` on `world_size` ranks.
double scaled_learning_rate(double learning_rate, Scaling scaling, int world_size);

}  // namespace dtool::trainer
