// The training loop of every workload that learns from samples: epochs of steps, and now and then a
// line, an evaluation, a checkpoint.
#pragma once

#include "trainer/ranks/process_group.h"
#include "trainer/settings/command_line.h"
#include "trainer/settings/experiment.h"
#include "trainer/supervised/objective.h"

namespace dtool::trainer {

/// Trains the workload's model on all ranks of `group`; rank 0 writes the lines and files. Throws
/// UsageError when the checkpoint to resume from is not there or does not fit, std::runtime_error
/// when the loss stops being a number.
void train(const Experiment& experiment, const Options& options, const Group& group,
           Objective& objective);

}  // namespace dtool::trainer
