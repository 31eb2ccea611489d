// SPDX-License-Identifier: MIT
// The tables [train], [[stage]] and [schedule] of an experiment whose workload learns from samples,
// and the factor that the schedule gives for each step.
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

// How the learning rate changes during a run.

enum class ScheduleKind { constant, step, multi_step, linear, multi_linear, cosine };

/// The unit of a schedule. Epochs are fractional: each step advances by its share of the epoch.
enum class ScheduleUnit { epochs, steps };

/// A straight line from one factor to another, over `length` units.
struct LinearPiece {
  double length = 0;
  double from = 1;
  double to = 1;
};

/// Times are in `unit`, factors multiply the learning rate.
struct ScheduleSettings {
  ScheduleKind kind{};
  ScheduleUnit unit{};
  double every = 1;                      ///< step: multiplies by `gamma` after each such interval
  std::vector<double> milestones = {};   ///< multi_step: multiplies by `gamma` at each
  double gamma = 0.1;                    ///< step, multi_step
  double length = 0;                     ///< linear, cosine: when `end` is reached
  double end = 0;                        ///< linear, cosine
  std::vector<LinearPiece> pieces = {};  ///< multi_linear; after the last piece its `to` stays
  double warm_up = 0;                    ///< the factor first grows linearly over this length
  double warm_up_start = 0;              ///< the share of the factor from which this growth starts
};

/// The factor at `time`, from 0 on. Step and multi_step are torch.optim.lr_scheduler's StepLR and
/// MultiStepLR. Linear, multi_linear and cosine start at 1; the first two are AllenAct's
/// LinearDecay and MultiLinearDecay. Cosine is Loshchilov and Hutter's annealing without restarts
/// (https://arxiv.org/abs/1608.03983, equation 5), after the warm-up.
double learning_rate_factor(const ScheduleSettings& schedule, double time);

/// Reads the keys of the chosen kind. If `schedule.length` is missing, `stages` give the length of
/// the run. Throws UsageError.
ScheduleSettings read_schedule(TomlReader& reader, const std::vector<Stage>& stages);

}  // namespace dtool::trainer
