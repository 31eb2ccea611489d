// SPDX-License-Identifier: MIT
// How many GPUs this process may use, without asking a driver: CUDA_VISIBLE_DEVICES interpreted as
// CUDA does, and the GPUs in /dev and /proc. Local rank i gets the i-th GPU.
#pragma once

#include <filesystem>

#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// The GPUs that CUDA would show this process: all of the machine's, or those that
/// CUDA_VISIBLE_DEVICES lists (killfiles/gpu_list.h). `root` is for tests.
int count_gpus(const Environment& environment, const std::filesystem::path& root = "/");

/// With NCCL each worker needs its own GPU: throws UsageError if there are more `workers` than
/// `gpus`. Without GPUs, or with gloo, any number is allowed.
void check_gpus(Backend wanted, int workers, int gpus);

}  // namespace dtool::trainer
