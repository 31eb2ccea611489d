// SPDX-License-Identifier: MIT
// Decentralised distributed proximal policy optimisation (Wijmans et al. 2020,
// https://arxiv.org/abs/1911.00357): every rank collects experience with its own samplers, and all
// learn from it together.
#pragma once

#include "trainer/reinforcement/encoded_policy.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/training/training.h"

namespace dtool::trainer {

/// Trains the policy on all ranks, in the environments that `make` makes, which are its spec's; or,
/// with `validation.follow`, only validates another run's. Throws as `train` or as
/// `follow_checkpoints` does.
void run_ddppo(const Run& run, const DdPpoSettings& settings, const MakeEnvironments& make,
               Policy& policy);

}  // namespace dtool::trainer
