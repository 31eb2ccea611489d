// SPDX-License-Identifier: MIT
// `dtool-trainer comm`: checks and times every operation between the ranks, the library's and our
// own. dtool-trainer-worker runs it on every rank.
#pragma once

#include "trainer/ranks/process_group.h"
#include "trainer/settings/comm_options.h"

namespace dtool::trainer {

/// Runs the whole command on this rank: measures, and on rank 0 prints and writes the files. Throws
/// UsageError if there is only one rank, std::runtime_error if a result was wrong.
void run_comm(const CommOptions& options, const Meeting& meeting, const Group& group);

}  // namespace dtool::trainer
