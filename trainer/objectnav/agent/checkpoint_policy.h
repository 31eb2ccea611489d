// SPDX-License-Identifier: MIT
// A trained policy for `dtool-trainer rollout`, from a checkpoint.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/objectnav/objectnav_settings.h"
#include "trainer/objectnav/trace.h"
#include "trainer/settings/command_line.h"

namespace dtool::trainer {

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
