// SPDX-License-Identifier: MIT
// A model with its data and its loss: everything that training on samples needs, a step of it, and
// the whole of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/data_set.h"
#include "trainer/model/model.h"
#include "trainer/ranks/process_group.h"
#include "trainer/settings/model_settings.h"
#include "trainer/settings/train_settings.h"
#include "trainer/training/checkpoint_keeper.h"
#include "trainer/training/data_parallel.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/training.h"

namespace dtool::trainer {

/// One number of an evaluation.
struct ScoreName {
  std::string name;  ///< such as `test_accuracy`
  Better better{};
};

/// A model with its data and its loss. A workload whose samples, loss or scores are of another kind
/// derives its own; `train_on_samples` trains any.
class Objective {
 public:
  Objective(std::unique_ptr<Model> model, DataSets data)
      : model_(std::move(model)), data_(std::move(data)) {}
  virtual ~Objective() = default;

  Model& model() { return *model_; }
  const DataSets& data() const { return data_; }

  /// The mean loss over a batch, a scalar. Right answers, at most one a sample, are added to
  /// `right`, a scalar, where it is defined and `counts_right`.
  virtual at::Tensor loss(const Batch& batch, const at::Tensor& right) = 0;

  /// Whether `loss` counts right answers, for `train_accuracy` and `test_accuracy`.
  virtual bool counts_right() const { return false; }

  /// The numbers that `evaluate` returns; the last one decides which model is best. By default the
  /// loss, and the accuracy if there is one.
  virtual std::vector<ScoreName> scores() const;

  /// Sums over the test samples of `range`, in the order of `scores`; divided by the number of
  /// samples they are the scores. By default `loss` gets 1024 samples at once. Leaves the model in
  /// evaluation mode.
  virtual std::vector<double> evaluate(Range range);

 private:
  std::unique_ptr<Model> model_;
  DataSets data_;
};

/// The mean loss over a batch, a scalar; PyTorch's functions of the same names. cross_entropy takes
/// [batch, classes] and int64 [batch]; the others take outputs and targets with equally many
/// values; bce takes outputs before the sigmoid. Throws UsageError if the shapes do not fit.
at::Tensor mean_loss(Loss loss, const at::Tensor& outputs, const at::Tensor& targets);

/// The four kinds of models that the tables [model] and [data] describe.
class SettingsObjective : public Objective {
 public:
  /// Throws UsageError if the model does not fit the data: it is tried on two samples.
  SettingsObjective(std::unique_ptr<Model> model, DataSets data, const ModelSettings& settings,
                    Precision precision);

  at::Tensor loss(const Batch& batch, const at::Tensor& right) override;
  bool counts_right() const override { return loss_ == Loss::cross_entropy; }

 private:
  Loss loss_;
  Target target_;
  Precision precision_;
};

// Loss and throughput between two lines of the log.

/// Sums over all ranks; seconds are this rank's.
struct LossSums {
  double loss = 0;   ///< the sum of each sample's loss
  double right = 0;  ///< the right answers, where they are counted
  double samples = 0;
  double seconds = 0;
  /// This rank's first step whose loss is not finite.
  std::int64_t first_bad_step = std::numeric_limits<std::int64_t>::max();

  void operator+=(const LossSums& other) {
    loss += other.loss;
    right += other.right;
    samples += other.samples;
    seconds += other.seconds;
  }
};

/// Sums since the last take(). A GPU's results stay on the GPU until then, so that no step waits
/// for them.
class LossWindow {
 public:
  /// `results` are float [2]: a step's mean loss, and its right answers. `step` is the run's, for
  /// the message if this loss is not finite.
  void add(const at::Tensor& results, std::int64_t samples, std::int64_t step);
  /// A collective operation; starts new sums.
  LossSums take(const Group& group);
  void begin_again();

 private:
  /// A step's results that are still on their device.
  struct Pending {
    at::Tensor results;
    std::int64_t samples = 0;
    std::int64_t step = 0;
  };
  void count(const float* results, std::int64_t samples, std::int64_t step);
  void fetch_pending();

  std::vector<Pending> pending_;
  LossSums sums_;  ///< this rank's
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// `the loss is no longer a number at epoch 2, step 1234, on rank 1 (machine 1, red02)`: names the
/// rank that was first. Call it if `sums` are not finite. A collective operation with the same
/// result on all ranks.
std::string where_the_loss_was_lost(const Group& group, std::int64_t epoch, const LossSums& sums);

// A step's work on the device: what a CUDA graph records.

std::int64_t samples_of(const std::vector<DrawnBatch>& batches);

/// Their tensors one after the other, and back for `count` batches.
std::vector<at::Tensor> tensors_of(const std::vector<DrawnBatch>& batches);
std::vector<DrawnBatch> drawn_in(const std::vector<at::Tensor>& tensors, std::size_t count);

/// One step with the mean loss of `batches`, from the objective's training set, in which each
/// counts by its samples; `results`, float [2] on the device, gets that mean and the right answers.
/// It must neither wait for the device nor depend on a changing number in the CPU's memory.
/// `Optimizer::prepare` comes before.
void step_on_device(const std::vector<DrawnBatch>& batches, Objective& objective,
                    DataParallel& parallel, Optimizer& optimizer, const at::Tensor& results);

// Training on samples, epoch by epoch: what the supervised workloads share with any workload that
// brings an objective of its own.

/// The tables [train], [[stage]] and [schedule], and `data.prefetch`. `train.precision` is for the
/// objective to heed.
struct SampleTraining {
  TrainSettings train;
  ScheduleSettings schedule;
  /// Batches that a thread gathers ahead; absent: 2 where a core would be idle, else 0.
  std::optional<std::int64_t> prefetch;
};

/// Trains on all ranks until the last stage is over: epochs in a drawn order, stages, evaluations,
/// lines, checkpoints and resuming. Throws UsageError if the ranks have other numbers of samples or
/// too few, or if no parameter changes the loss, and whatever `train` throws.
void train_on_samples(const Run& run, const SampleTraining& training, Objective& objective);

}  // namespace dtool::trainer
