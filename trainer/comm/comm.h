// `dtool-trainer comm`: every primitive between the ranks, checked and timed, the library's beside
// our own. Run by dtool-trainer-worker on every rank.
#pragma once

#include "trainer/comm/comm_options.h"
#include "trainer/ranks/process_group.h"

namespace dtool::trainer {

/// The whole command on this rank: measures, and on rank 0 prints and writes the files. Throws
/// UsageError if there is only one rank, std::runtime_error when numbers were wrong.
void run_comm(const CommOptions& options, const Meeting& meeting, const Group& group);

}  // namespace dtool::trainer
