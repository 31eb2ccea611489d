// The training loop of every workload: step by step, and once in a while a line, an evaluation, a
// checkpoint, an answer to a signal.
#pragma once

#include "trainer/training/workload.h"

namespace dtool::trainer {

/// Trains `workload` on all ranks, from the checkpoint that the options name where they name one;
/// rank 0 writes the lines and files. Throws UsageError when that checkpoint is not there or does
/// not fit, RunFailed when the loss stops being a number.
void train(const Run& run, Workload& workload);

}  // namespace dtool::trainer
