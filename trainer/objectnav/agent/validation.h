// SPDX-License-Identifier: MIT
// How well a policy does in houses that were not used for training.
#pragma once

#include "trainer/objectnav/agent/actor_critic.h"
#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/ranks/process_group.h"
#include "trainer/report/progress_log.h"

namespace dtool::trainer {

/// Plays the episodes, distributed over the ranks; each has its own house, independent of the
/// number of ranks. Actions are drawn as in training. Returns `validation_spl` and
/// `validation_success`; the last one decides which checkpoint is best. A collective operation.
Scores validate(const EnvironmentSettings& environment, const ValidationSettings& settings,
                ActorCritic& policy, const Group& group);

}  // namespace dtool::trainer
