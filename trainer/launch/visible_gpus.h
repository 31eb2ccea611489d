// How many GPUs this process may use, without asking a driver: CUDA_VISIBLE_DEVICES read as CUDA
// reads it, over what /dev and /proc say of the machine. Local rank i gets the i-th of them.
#pragma once

#include <filesystem>

#include "trainer/launch/environment.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// GPUs that CUDA would show this process: all of the machine's, or those that CUDA_VISIBLE_DEVICES
/// lists by number, by UUID (`GPU-...`, which may be cut short) or by MIG instance (only one of
/// which CUDA shows). The first entry that names no GPU ends the list; one that is there twice
/// empties it. `root` is for tests.
int count_gpus(const Environment& environment, const std::filesystem::path& root = "/");

/// With NCCL each worker needs a GPU of its own: throws UsageError if `workers` are more than
/// `gpus`. Without GPUs, or with gloo, any number will do.
void check_gpus(Backend wanted, int workers, int gpus);

}  // namespace dtool::trainer
