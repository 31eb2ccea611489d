// SPDX-License-Identifier: MIT
// Training on samples, epoch by epoch: what the supervised workloads share with any workload that
// brings an objective of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/settings/schedule_settings.h"
#include "trainer/settings/train_settings.h"
#include "trainer/supervised/objective.h"
#include "trainer/training/training.h"

namespace dtool::trainer {

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
