// SPDX-License-Identifier: MIT
// `dtool-trainer rollout`: plays one episode and shows the agent's actions. Called by main, and by
// the worker for a network's policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "trainer/objectnav/episode.h"
#include "trainer/settings/command_line.h"

namespace dtool::trainer {

/// Plays the episode with this seed and writes its picture. `policy` chooses each action; `who` is
/// its name. Throws UsageError if the file cannot be written.
void show_rollout(const RolloutOptions& options, const EnvironmentSettings& settings,
                  std::uint64_t seed, const MovePolicy& policy, const std::string& who);

/// The policies without a network: `shortest`, and `random`, whose actions depend on `seed`.
MovePolicy policy_without_network(PolicyKind kind, std::uint64_t seed);

// An episode as text: the map with the agent's path, and the agent's view beside it.

/// The state before move `step`; if `step` is the number of moves, the last state.
std::string text_picture(const Trace& trace, std::size_t step);

}  // namespace dtool::trainer
