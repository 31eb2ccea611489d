// How well a policy does in houses that it has not been trained in.
#pragma once

#include "trainer/objectnav/environment_settings.h"
#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/ranks/process_group.h"
#include "trainer/reinforcement/actor_critic.h"
#include "trainer/report/progress_log.h"

namespace dtool::trainer {

/// Plays the episodes, dealt out over the ranks; a house and an episode each, the same whatever the
/// number of ranks. Actions are drawn as in training. Returns `validation_spl` and
/// `validation_success`, the one that counts last. A collective operation.
Scores validate(const EnvironmentSettings& environment, const ValidationSettings& settings,
                ActorCritic& policy, const Group& group);

}  // namespace dtool::trainer
