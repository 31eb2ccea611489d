// SPDX-License-Identifier: MIT
// Validation on a separate machine: a run that does not train but validates each new checkpoint of
// another run.
#pragma once

#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/training/workload.h"

namespace dtool::trainer {

/// Validates the checkpoints in the output folder `validation.follow`, from the oldest on, and
/// waits for new ones, until one has all the experiment's steps. Each result goes to this run's own
/// output and to `validation.jsonl` in that folder, with the time at which the checkpoint was
/// written. Checkpoints that are deleted before their turn are skipped. All ranks take part. Throws
/// UsageError if there is no such folder or a checkpoint belongs to another network, RunFailed if
/// no new one appears for `validation.patience`.
void follow_checkpoints(const Run& run, const ObjectNavSettings& settings);

}  // namespace dtool::trainer
