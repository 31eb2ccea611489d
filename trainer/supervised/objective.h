// SPDX-License-Identifier: MIT
// A model with its data and its loss: everything that the training loop trains.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/data/data_set.h"
#include "trainer/model/model.h"
#include "trainer/settings/model_settings.h"
#include "trainer/settings/train_settings.h"
#include "trainer/training/checkpoint_keeper.h"

namespace dtool::trainer {

/// One number of an evaluation.
struct ScoreName {
  std::string name;  ///< such as `test_accuracy`
  Better better{};
};

class Objective {
 public:
  /// Throws UsageError if the model does not fit the data: it is tried on two samples.
  Objective(std::unique_ptr<Model> model, DataSets data, const ModelSettings& settings,
            Precision precision);

  Model& model() { return *model_; }
  const DataSets& data() const { return data_; }

  /// The mean loss over a batch, a scalar.
  at::Tensor loss(const Batch& batch);

  /// The numbers that `evaluate` returns; the last one decides which model is best.
  std::vector<ScoreName> scores() const;

  /// Sums over the test samples of `range`, in the order of `scores`; divided by the number of
  /// samples they are the scores. Leaves the model in evaluation mode.
  std::vector<double> evaluate(Range range);

 private:
  at::Tensor outputs(const Batch& batch);
  const at::Tensor& targets_of(const Batch& batch) const;

  std::unique_ptr<Model> model_;
  DataSets data_;
  Loss loss_;
  Target target_;
  Precision precision_;
};

}  // namespace dtool::trainer
