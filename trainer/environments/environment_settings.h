// SPDX-License-Identifier: MIT
// The tables that only an experiment with workload = "ppo" has.
#pragma once

#include "trainer/environments/process_environments.h"
#include "trainer/reinforcement/policy_settings.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

struct PpoWorkloadSettings : ReinforcementSettings {
  EnvironmentSpec assumed_spec() const override;
  bool has_episodes() const override { return false; }  ///< none that can be drawn

  WorkerSettings worker;
};

}  // namespace dtool::trainer
