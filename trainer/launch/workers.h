// The workers of this machine where no launcher starts a process a rank: `dtool-trainer EXPERIMENT
// --nproc_per_node N` by hand.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/launch/launch.h"

namespace dtool::trainer {

/// Starts a worker for each local rank, `first` being the place of the first of them, and waits for
/// all. When one fails the others are killed, and the last line on stderr is why. Workers get
/// SIGINT, SIGTERM (also for SIGHUP) and SIGUSR1 that come here; after the first two they have
/// kTerminationGrace. They die with this process. Returns this process's exit code: 0, 1, 2 when
/// the cause is a user's mistake, or 128 + the signal that ended this process. Throws
/// std::system_error.
int run_workers(const Place& first, const std::filesystem::path& program,
                const std::vector<std::string>& arguments, int threads);

}  // namespace dtool::trainer
