// Validation on a machine of its own: a run that does not train but tries each checkpoint of
// another run as it comes.
#pragma once

#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/training/workload.h"

namespace dtool::trainer {

/// Validates the checkpoints in the output folder that `validation.follow` names, from the oldest
/// on, and waits for new ones, until one has all the experiment's steps. Each result goes to this
/// run's own output and to `validation.jsonl` in that folder, with the time at which the checkpoint
/// was written. Checkpoints that their writer takes away before their turn are passed over. All
/// ranks take part. Throws UsageError if there is no such folder or a checkpoint is
/// of another network, RunFailed when no new one comes for `validation.patience`.
void follow_checkpoints(const Run& run, const ObjectNavSettings& settings);

}  // namespace dtool::trainer
