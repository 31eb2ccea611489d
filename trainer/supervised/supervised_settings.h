// SPDX-License-Identifier: MIT
// The settings of workloads that learn from samples.
#pragma once

#include <cstdint>
#include <vector>
#include "trainer/data/data_settings.h"
#include "trainer/settings/experiment.h"
#include "trainer/settings/model_settings.h"
#include "trainer/settings/train_settings.h"
#include "trainer/training/progress.h"

namespace dtool::trainer {

struct SupervisedSettings : WorkloadSettings {
  /// If only the data could tell, images count as 28 x 28 pixels and outputs as ten. Of a
  /// TorchScript module nothing is known: it counts as work without end.
  std::int64_t multiply_adds_per_batch(const RankCount& /*ranks*/) const override;

  ModelKind kind{};
  ModelSettings model;
  DataSettings data;
  TrainSettings train;
  ScheduleSettings schedule;
};

// Arithmetic on stages and progress: the current stage, the length of the run, and the progress.

/// The stages of a run whose ranks each train `share` samples an epoch.
class StagePlan {
 public:
  /// The batches are one rank's.
  StagePlan(std::vector<Stage> stages, std::int64_t share);

  const Stage& stage(const Progress& progress) const;
  std::size_t size() const { return stages_.size(); }

  /// Whether the last stage is complete. A run whose last stage was made longer meanwhile
  /// continues.
  bool is_over(const Progress& progress) const;
  bool stage_is_over(const Progress& progress) const;

  /// The steps of an epoch in the stage: each takes `accumulate` batches, the last perhaps fewer.
  std::int64_t steps_of_epoch(const Stage& stage) const;

  /// Epochs of the whole run; 0 if some stage counts in steps.
  std::int64_t epochs() const;

  /// In epochs, from 0: the finished ones and the share of the current one.
  double epochs_done(const Progress& progress) const;

  /// From 0 to 1, for the estimate of the remaining time.
  double share_done(const Progress& progress) const;

 private:
  std::vector<Stage> stages_;
  std::int64_t share_;
};

}  // namespace dtool::trainer
