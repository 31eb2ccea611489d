// SPDX-License-Identifier: MIT
// How well a policy does in environments that were not used for training: validates the policy that
// learns, or on a separate machine each new checkpoint of another run.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/ranks/process_group.h"
#include "trainer/reinforcement/encoded_policy.h"
#include "trainer/reinforcement/ppo_settings.h"
#include "trainer/report/progress_log.h"
#include "trainer/training/training.h"

namespace dtool::trainer {

/// Plays the same episodes again and again. The environments are distributed over the ranks, and
/// each plays equally many of its first episodes, so that they are the same for any number of
/// ranks.
class Validator {
 public:
  /// What is given must outlive this.
  Validator(const MakeEnvironments& make, const ValidationSettings& settings, const Policy& policy,
            const Group& group);

  /// Actions are drawn as in training. Returns the means of the spec's scores, such as
  /// `validation_success`, its first one last: that one decides which checkpoint is best. Empty if
  /// SIGTERM has asked a rank to end meanwhile. A collective operation.
  Scores validate();

 private:
  EpisodeSums play(Environments& samplers, std::int64_t first);
  bool meet(double playing);

  const MakeEnvironments& make_;
  const ValidationSettings& settings_;
  const Policy& policy_;
  const Group& group_;
  std::unique_ptr<Environments> kept_;  ///< absent if others are made for each validation
  std::vector<std::uint8_t> at_first_;  ///< their state, from which each validation begins
  std::chrono::steady_clock::time_point next_meeting_;
  bool is_left_ = false;  ///< this validation, since the run is to end
};

/// Validates the checkpoints in the output folder `validation.follow`, from the oldest on, and
/// waits for new ones, until one has `settings.pipeline.steps`. Each result goes to this run's own
/// output and to `validation.jsonl` in that folder, with the time at which the checkpoint was
/// written. Checkpoints that are deleted before their turn are skipped. All ranks take part. Throws
/// UsageError if there is no such folder or a checkpoint belongs to another network, RunFailed if
/// no new one appears for `validation.patience`.
void follow_checkpoints(const Run& run, const DdPpoSettings& settings, const MakeEnvironments& make,
                        Policy& policy);

}  // namespace dtool::trainer
