// SPDX-License-Identifier: MIT
// The settings of workloads that learn from samples.
#pragma once

#include "trainer/data/data_settings.h"
#include "trainer/settings/experiment.h"
#include "trainer/settings/model_settings.h"
#include "trainer/settings/schedule_settings.h"
#include "trainer/settings/train_settings.h"

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

}  // namespace dtool::trainer
