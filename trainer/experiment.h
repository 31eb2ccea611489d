// What an experiment file says: the contract of docs/experiment.md as plain structs.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/toml_reader.h"

namespace dtool::trainer {

enum class DataSource { mnist, digits };

/// How the learning rate grows with the number of ranks.
enum class Scaling { none, linear, sqrt };

enum class Backend { automatic, gloo, nccl };

struct ModelSettings {
  std::vector<std::int64_t> hidden;  ///< widths of the hidden layers, first to last
};

struct DataSettings {
  DataSource source{};
  std::string path;  ///< folder of the four IDX files
  std::int64_t train_samples{};
  std::int64_t test_samples{};
  std::uint64_t drawing_seed{};
};

struct OptimizerSettings {
  double learning_rate{};
  Scaling scaling{};
  double beta1{};
  double beta2{};
  double epsilon{};
};

struct TrainSettings {
  std::int64_t epochs{};
  std::int64_t batch_size{};      ///< samples a rank a step
  std::int64_t evaluate_every{};  ///< epochs; 0: after the last only
};

struct CheckpointSettings {
  std::int64_t every_epochs{};  ///< 0: none
  std::int64_t keep{};          ///< how many of the newest stay
};

struct DistributedSettings {
  Backend backend{};
  std::chrono::seconds collective_timeout{};
};

struct Experiment {
  std::string workload;  ///< `classifier`
  std::optional<std::int64_t> distributed_nodes;
  ModelSettings model;
  DataSettings data;
  OptimizerSettings optimizer;
  TrainSettings train;
  CheckpointSettings checkpoint;
  DistributedSettings distributed;
  std::int64_t log_every_steps{};
  bool log_tensorboard{};
  std::vector<Setting> settings;  ///< every key above as the settings table shows it
};

/// Reads and checks an experiment. Throws UsageError with file, line and key.
Experiment read_experiment(const std::filesystem::path& file);

/// Forward multiply-adds of one rank's step, for images of 28 x 28 pixels and ten classes.
std::int64_t multiply_adds_per_step(const Experiment& experiment);

/// The learning rate of a run on `world_size` ranks.
double scaled_learning_rate(const OptimizerSettings& optimizer, int world_size);

}  // namespace dtool::trainer
