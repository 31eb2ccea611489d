// SPDX-License-Identifier: MIT
// The two stages of distributed DD-PPO and their learning rate, after AllenAct's tutorial on
// training across several nodes: first small batches, then large ones with a larger rate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/training/schedule.h"

namespace dtool::trainer {

/// Lengths are in experience steps of all ranks together.
struct PipelineSettings {
  std::int64_t steps = 300'000'000;             ///< of the whole run
  std::int64_t small_batch_steps = 30'000'000;  ///< of the first stage; 0: there is no first stage
  double transition_steps_per_node = 2e6 / 3;   ///< times the nodes: the steps over which the
                                                ///< learning rate grows
};

/// How to learn from the experience of one rollout.
struct UpdateSettings {
  std::int64_t num_mini_batch = 1;  ///< parts into which a rank's samplers are divided
  std::int64_t update_repeats = 4;  ///< passes over all mini-batches
};

struct PipelineStage {
  std::int64_t end = 0;  ///< the stage is over when this many experience steps have been collected
  UpdateSettings update;
};

struct Pipeline {
  std::vector<PipelineStage> stages;  ///< one or two
  /// The learning rate's factor; `learning_rate_factor` takes the experience steps so far.
  ScheduleSettings schedule;

  /// The stage after `steps` steps; the last stage if all are over.
  std::size_t stage_at(std::int64_t steps) const;
  bool is_over(std::int64_t steps) const { return steps >= stages.back().end; }
};

/// The tutorial's nodes: machines or ranks.
struct Nodes {
  std::int64_t count = 1;
  std::int64_t samplers = 60;        ///< of each node
  std::int64_t smallest_share = 60;  ///< the fewest samplers that one of a node's ranks has
};

/// The pipeline of a run on `nodes`.
///
/// The first stage makes as many updates for the same experience as one node would. For this, the
/// number of mini-batches is multiplied by the largest divisor of a node's samplers that exceeds
/// neither half of them nor the number of nodes, so that all mini-batches have the same size. Where
/// ranks share a node's samplers, it is also so small that each of them has a part of every
/// mini-batch. The repeats are multiplied by the rest of the nodes, rounded up. The second stage
/// has the base's numbers; its batches are larger by the number of nodes.
///
/// The learning rate falls linearly towards 0 at the end of the run. From 2 % after the first
/// stage's end it grows, over the transition, to the square root of the nodes times that line.
///
/// Throws UsageError if the pieces are longer than the run, or if a rank has fewer samplers than
/// mini-batches.
Pipeline plan_pipeline(const PipelineSettings& settings, const UpdateSettings& base,
                       const Nodes& nodes);

}  // namespace dtool::trainer
