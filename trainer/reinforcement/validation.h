// SPDX-License-Identifier: MIT
// How well a policy does in environments that were not used for training: validates the policy that
// learns, or on a separate machine each new checkpoint of another run.
#pragma once

#include "trainer/ranks/process_group.h"
#include "trainer/reinforcement/policy.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/report/progress_log.h"
#include "trainer/training/training.h"

namespace dtool::trainer {

/// Plays the episodes, distributed over the ranks; each is the first of its own environment,
/// whatever the number of ranks. Actions are drawn as in training. Returns the means of the spec's
/// scores, such as `validation_success`, its first one last: that one decides which checkpoint is
/// best. A collective operation.
Scores validate(const MakeEnvironments& make, const ValidationSettings& settings,
                const Policy& policy, const Group& group);

/// Validates the checkpoints in the output folder `validation.follow`, from the oldest on, and
/// waits for new ones, until one has `settings.pipeline.steps`. Each result goes to this run's own
/// output and to `validation.jsonl` in that folder, with the time at which the checkpoint was
/// written. Checkpoints that are deleted before their turn are skipped. All ranks take part. Throws
/// UsageError if there is no such folder or a checkpoint belongs to another network, RunFailed if
/// no new one appears for `validation.patience`.
void follow_checkpoints(const Run& run, const DdPpoSettings& settings, const MakeEnvironments& make,
                        Policy& policy);

}  // namespace dtool::trainer
