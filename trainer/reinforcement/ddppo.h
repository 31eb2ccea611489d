// Decentralised distributed proximal policy optimisation (Wijmans et al. 2020,
// https://arxiv.org/abs/1911.00357): every rank collects experience with its own samplers, and all
// learn from it together.
#pragma once

#include "trainer/ranks/process_group.h"
#include "trainer/ranks/rendezvous.h"
#include "trainer/settings/command_line.h"
#include "trainer/settings/experiment.h"

namespace dtool::trainer {

/// Trains the policy of an experiment with workload objectnav on all ranks of `group`; rank 0
/// writes the lines and files. The learning starts from default-generator weights. Throws
/// UsageError when the checkpoint to resume from is not there or does not fit, RunFailed when the
/// loss stops being a number.
void train_ddppo(const Experiment& experiment, const Options& options, const Meeting& meeting,
                 const Group& group);

}  // namespace dtool::trainer
