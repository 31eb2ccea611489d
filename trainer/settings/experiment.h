// What an experiment file says: the contract of docs/experiment.md as plain structs.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/model/layers.h"
#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/settings/file_settings.h"
#include "trainer/settings/toml_reader.h"
#include "trainer/training/schedule.h"

namespace dtool::trainer {

enum class WorkloadKind { regression, classifier, autoencoder, torchscript, objectnav };

enum class DataSource { mnist, idx, csv, digits, random };

/// What the model's outputs are compared with.
enum class Loss { cross_entropy, mse, l1, huber, bce };

/// What a model is to give back: the samples' labels or values, or the samples themselves.
enum class Target { targets, inputs };

enum class Activation { none, relu, sigmoid };

enum class SyncBatchNorm { no, yes };

/// How the learning rate grows with the number of ranks.
enum class Scaling { none, linear, sqrt };

/// Whose batch `train.batch_size` is.
enum class BatchPer { rank, machine, run };

enum class OptimizerKind { adam, adamw, sgd };

enum class Backend { automatic, gloo, nccl };

/// How gradients are added up over the ranks: by the backend, or by an algorithm of our own.
enum class AllReduce { automatic, library, ring, pairwise, halving_doubling, doubling, tree };

/// Of the forward pass; parameters are float32 always.
enum class Precision { float32, bfloat16 };

/// Whether steps are played back from a CUDA graph.
enum class CudaGraph { automatic, on, off };

struct ModelSettings {
  std::vector<Layer> layers;  ///< all but the output layer, first to last
  Activation output_activation{};
  SyncBatchNorm sync_batch_norm{};
  std::string file;   ///< torchscript: the exported module
  Shape input_shape;  ///< torchscript: of one sample; empty: the data's own
  Loss loss{};
  Target target{};
};

enum class RandomTargets { noise, linear };

struct DataSettings {
  DataSource source{};
  FileSettings files;  ///< mnist, idx, csv
  std::int64_t train_samples{};
  std::int64_t test_samples{};
  std::int64_t features{};         ///< random
  RandomTargets random_targets{};  ///< random
  std::uint64_t drawing_seed{};
  /// Batches gathered ahead by a thread; 0: none. Absent: as `batches_ahead` has it.
  std::optional<std::int64_t> prefetch;
};

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

/// A part of the training with its own batch and length. One of `epochs` and `steps` is not 0.
struct Stage {
  std::int64_t epochs{};
  std::int64_t steps{};
  std::int64_t batch_size{};  ///< samples of a micro-batch, of a rank, machine or run: `batch_per`
  std::int64_t accumulate{};  ///< micro-batches a step
  std::int64_t repeats{};     ///< steps with the same samples
  double learning_rate{};
};

struct TrainSettings {
  std::vector<Stage> stages;  ///< at least one
  BatchPer batch_per{};
  std::int64_t evaluate_every{};  ///< epochs; 0: after the last only
  Precision precision{};
  CudaGraph cuda_graph{};
};

/// Steps are the optimizer's, in objectnav experience steps of all ranks.
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

/// `objectnav` is there for that workload; it has no model, data, schedule and train.
struct Experiment {
  WorkloadKind workload{};
  std::optional<std::int64_t> distributed_nodes;
  ModelSettings model;
  DataSettings data;
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  TrainSettings train;
  std::optional<ObjectNavSettings> objectnav;
  CheckpointSettings checkpoint;
  DistributedSettings distributed;
  std::int64_t log_every_steps{};  ///< in objectnav experience steps of all ranks
  bool log_tensorboard{};
  std::vector<Setting> settings;  ///< every key above as the settings table shows it
};

/// Reads and checks an experiment. Throws UsageError with file, line and key.
Experiment read_experiment(const std::filesystem::path& file);

/// The settings of an experiment with workload objectnav. Throws UsageError for any other.
const ObjectNavSettings& objectnav_of(const Experiment& experiment,
                                      const std::filesystem::path& file);

/// Forward multiply-adds of one rank's largest micro-batch; images count as 28 x 28 pixels and
/// outputs as ten where only the data can tell.
std::int64_t multiply_adds_per_batch(const Experiment& experiment);

/// `learning_rate` on `world_size` ranks.
double scaled_learning_rate(double learning_rate, Scaling scaling, int world_size);

/// Samples of one rank's micro-batch. Throws UsageError when the ranks do not divide it.
std::int64_t batch_of_rank(std::int64_t batch_size, BatchPer per, int local_world_size,
                           int world_size);

}  // namespace dtool::trainer
