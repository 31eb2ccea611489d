// SPDX-License-Identifier: MIT
// Validation on a separate machine: a run that does not train but validates each new checkpoint of
// another run.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/objectnav/trace.h"
#include "trainer/settings/command_line.h"
#include "trainer/training/training.h"

namespace dtool::trainer {

/// Validates the checkpoints in the output folder `validation.follow`, from the oldest on, and
/// waits for new ones, until one has all the experiment's steps. Each result goes to this run's own
/// output and to `validation.jsonl` in that folder, with the time at which the checkpoint was
/// written. Checkpoints that are deleted before their turn are skipped. All ranks take part. Throws
/// UsageError if there is no such folder or a checkpoint belongs to another network, RunFailed if
/// no new one appears for `validation.patience`.
void follow_checkpoints(const Run& run, const ObjectNavSettings& settings);

// A trained policy for `dtool-trainer rollout`, from a checkpoint.

/// The network of `--checkpoint`, and the checkpoint's file. It draws its actions as `validate`
/// does with the same seed, so that episode N is the same as in validation. Throws UsageError if
/// there is no such checkpoint, or it belongs to another network.
struct CheckpointPolicy {
  MovePolicy choose;
  std::string file;
};
CheckpointPolicy read_policy(const ObjectNavSettings& settings, const CommandLine& options,
                             std::uint64_t seed);

}  // namespace dtool::trainer
