// The two stages of distributed DD-PPO and their learning rate, after AllenAct's tutorial on
// training across several nodes: small batches at first, then large ones with a larger rate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/training/schedule.h"

namespace dtool::trainer {

/// Lengths count experience steps, those of all ranks together.
struct PipelineSettings {
  std::int64_t steps = 300'000'000;             ///< of the whole run
  std::int64_t small_batch_steps = 30'000'000;  ///< of the first stage; 0: there is none
  double transition_steps_per_node = 2e6 / 3;   ///< for the learning rate to grow, times the nodes
};

/// How the experience of one rollout is learned from.
struct UpdateSettings {
  std::int64_t num_mini_batch = 1;  ///< into which a rank's samplers are dealt out
  std::int64_t update_repeats = 4;  ///< passes over all mini-batches
};

struct PipelineStage {
  std::int64_t end = 0;  ///< the stage is over once so many experience steps have been collected
  UpdateSettings update;
};

struct Pipeline {
  std::vector<PipelineStage> stages;  ///< one or two
  /// The learning rate's factor; `learning_rate_factor` takes the experience steps so far.
  ScheduleSettings schedule;

  /// The stage in which the run is after `steps`; the last one's when all is over.
  std::size_t stage_at(std::int64_t steps) const;
  bool is_over(std::int64_t steps) const { return steps >= stages.back().end; }
};

/// The pipeline of a run in which each of `nodes` ranks has `samplers`.
///
/// The first stage has as many updates for the same experience as one node would make: the number
/// of mini-batches is multiplied by the largest divisor of `samplers` that is neither above half of
/// them nor above `nodes`, so that all stay of one size, and the repeats by what is then missing to
/// `nodes`, rounded up. The second has the base's, with batches larger by `nodes`.
///
/// The learning rate falls linearly towards 0 at the end of the run; 2 % after the first stage's
/// end it begins to grow, over the transition, to sqrt(`nodes`) times that line.
///
/// Throws UsageError if the pieces are longer than the run, or a rank has fewer samplers than
/// mini-batches.
Pipeline plan_pipeline(const PipelineSettings& settings, const UpdateSettings& base,
                       std::int64_t samplers, std::int64_t nodes);

}  // namespace dtool::trainer
