// SPDX-License-Identifier: MIT
// The tables [train] and [[stage]] of an experiment whose workload learns from samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/settings/experiment.h"
#include "trainer/settings/toml_reader.h"

namespace dtool::trainer {

/// Whether steps are replayed from a CUDA graph.
enum class CudaGraph { automatic, on, off };

struct CudaGraphSetting {
  CudaGraph wanted{};
  std::string key;  ///< the key in the experiment, such as `train.cuda_graph`

  /// The line that does without, for messages.
  std::string off() const { return key + " = \"off\""; }
};

/// Throws UsageError.
inline CudaGraphSetting read_cuda_graph(TomlReader& reader, const std::string& key) {
  return {choose<CudaGraph>(
              reader, key,
              {{"auto", CudaGraph::automatic}, {"on", CudaGraph::on}, {"off", CudaGraph::off}}),
          key};
}

/// Whether `train.batch_size` is per rank, per machine or for the whole run.
enum class BatchPer { rank, machine, run };

/// The precision of the forward pass; parameters are always float32.
enum class Precision { float32, bfloat16 };

/// Throws UsageError.
inline Precision read_precision(TomlReader& reader, const std::string& key) {
  return choose<Precision>(reader, key,
                           {{"float32", Precision::float32}, {"bfloat16", Precision::bfloat16}});
}

/// A part of the training with its own batch and length. Either `epochs` or `steps` is not 0.
struct Stage {
  std::int64_t epochs{};
  std::int64_t steps{};
  std::int64_t batch_size{};  ///< samples of a micro-batch; per rank, machine or run: `batch_per`
  std::int64_t accumulate{};  ///< micro-batches per step
  std::int64_t repeats{};     ///< steps with the same samples
  double learning_rate{};
};

struct TrainSettings {
  std::vector<Stage> stages;  ///< one stage or more
  BatchPer batch_per{};
  std::int64_t evaluate_every{};  ///< epochs; 0: only after the last
  Precision precision{};
  CudaGraphSetting cuda_graph;
};

/// Throws UsageError.
TrainSettings read_train(TomlReader& reader, const OptimizerSettings& optimizer);

/// Samples of one rank's micro-batch. Throws UsageError if the ranks cannot share it evenly.
std::int64_t batch_of_rank(std::int64_t batch_size, BatchPer per, int local_world_size,
                           int world_size);

}  // namespace dtool::trainer
