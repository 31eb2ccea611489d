// SPDX-License-Identifier: MIT
// The training loop of every workload: step by step, and once in a while a line, an evaluation, a
// checkpoint, an answer to a signal.
#pragma once

#include "trainer/training/workload.h"

namespace dtool::trainer {

/// Trains `workload` on all ranks, from the checkpoint in the options if there is one. Rank 0
/// writes the lines and files. Throws UsageError if that checkpoint is missing or does not fit,
/// RunFailed if the loss is no longer a number.
void train(const Run& run, Workload& workload);

}  // namespace dtool::trainer
