// SPDX-License-Identifier: MIT
// `dtool-trainer rollout`: plays one episode and shows the agent's actions. Called by main, and by
// the worker for a network's policy.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/objectnav/episode.h"
#include "trainer/settings/command_line.h"

namespace dtool::trainer {

/// Plays the episode with this seed and writes its picture, or plays `options.episodes` and prints
/// their mean success, SPL and number of steps. `policy` chooses each action; `who` is
/// its name. Throws UsageError if the file cannot be written.
void show_rollout(const RolloutOptions& options, const EnvironmentSettings& settings,
                  std::uint64_t seed, const MovePolicy& policy, const std::string& who);

/// The policies without a network. `shortest` knows the house, `wander` and `doors` use only what
/// the agent sees; the chance in these and in `random` depends on `seed`.
MovePolicy policy_without_network(PolicyKind kind, const EnvironmentSettings& settings,
                                  std::uint64_t seed);

/// The name of such a policy, for pictures.
std::string name_without_network(PolicyKind kind);

}  // namespace dtool::trainer
