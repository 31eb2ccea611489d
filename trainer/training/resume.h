// Where a run goes on that has a checkpoint.
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

/// Where rank 0 keeps the checkpoints.
std::filesystem::path checkpoints_of(const Options& options);

/// The file that `--checkpoint` names; empty for `auto` where there is none yet. Throws UsageError
/// if there is no such file, or `latest` and none.
std::filesystem::path checkpoint_of(const Options& options);

struct Resumed {
  std::string from;                 ///< the file, as rank 0 calls it; empty: `auto` found none
  Progress progress;                ///< the checkpoint's, with this run's seed and number of ranks
  int saved_world_size = 1;         ///< of the run that wrote it
  std::vector<NamedTensor> others;  ///< as `pack` was given them
};

/// Puts the checkpoint of `--checkpoint` into `model` and `optimizer` on all ranks. Any number of
/// ranks can deal out the rest of an epoch, but only of the same samples in the same order, and
/// only in one of the `stages` that there are. `--checkpoint auto` where there is none leaves all
/// as it is. Throws UsageError when there is no such checkpoint, or when it does not fit this run,
/// which `fresh` describes.
Resumed resume_from(const Options& options, const Group& group, Weights& model,
                    Optimizer& optimizer, const Progress& fresh, std::size_t stages);

}  // namespace dtool::trainer
