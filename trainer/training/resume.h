// SPDX-License-Identifier: MIT
// Resumes a run from a checkpoint.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/ranks/process_group.h"
#include "trainer/settings/command_line.h"
#include "trainer/training/optimizer.h"
#include "trainer/training/progress.h"

namespace dtool::trainer {

/// The folder in which rank 0 keeps the checkpoints.
std::filesystem::path checkpoints_of(const CommandLine& options);

/// The file that `--checkpoint` names; empty for `auto` if there is none yet. `auto` and `latest`
/// take the newest that is whole, and say which newer ones are not. One of a former format only if
/// there is no other. Throws UsageError if there is no such file, if none is whole, or if there is
/// no checkpoint for `latest`.
std::filesystem::path checkpoint_of(const CommandLine& options);

struct Resumed {
  std::string from;   ///< the file's name on rank 0; empty: `auto` found none
  Progress progress;  ///< the checkpoint's progress, with this run's seed and number of ranks
  int saved_world_size = 1;         ///< of the run that wrote it
  std::vector<NamedTensor> others;  ///< the other tensors of the snapshot
};

/// Loads the checkpoint of `--checkpoint` into `model` and `optimizer` on all ranks. The number of
/// ranks may have changed: the rest of an epoch is dealt out anew. But the samples and their order
/// must be the same, and the checkpoint's stage must be among `stages`. If `--checkpoint auto`
/// finds none, nothing changes. Throws UsageError if there is no such checkpoint, or if it does not
/// fit this run, which `fresh` describes.
Resumed resume_from(const CommandLine& options, const Group& group, Weights& model,
                    Optimizer& optimizer, const Progress& fresh, std::size_t stages);

}  // namespace dtool::trainer
