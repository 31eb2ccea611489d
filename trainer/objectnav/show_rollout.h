// `dtool-trainer rollout`: plays one episode and shows what the agent did. Called by
// main, and by the worker for a network's policy.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/objectnav/trace.h"
#include "trainer/reinforcement/rollout_options.h"

namespace dtool::trainer {

/// Plays the episode with this seed and writes its picture. `policy` is asked for each action;
/// `who` names it. Throws UsageError if the file cannot be written.
void show_rollout(const RolloutOptions& options, const EnvironmentSettings& settings,
                  std::uint64_t seed, const MovePolicy& policy, const std::string& who);

/// The policies that need no network: `shortest` and `random`, whose actions `seed` decides.
MovePolicy policy_without_network(PolicyKind kind, std::uint64_t seed);

}  // namespace dtool::trainer
