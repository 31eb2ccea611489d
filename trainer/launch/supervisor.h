// The machine's process: starts the workers, watches them, and when one fails, here or on another
// machine, ends the others and says why, in the line that all machines print.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/cause_exchange.h"
#include "trainer/launch/launch.h"
#include "trainer/launch/requests.h"
#include "trainer/launch/worker_processes.h"

namespace dtool::trainer {

/// The workers of this machine, one a local rank; `first` is the place of the first of them.
std::vector<WorkerCommand> plan_workers(const Place& first, const std::filesystem::path& program,
                                        const std::vector<std::string>& arguments,
                                        const Environment& environment, int threads);

/// Starts the workers and waits for all of them, and for the other machines. When the run fails,
/// workers are killed, and the last line on stderr is the cause. SIGINT ends the workers too, and
/// so do SIGTERM and SIGHUP here or on another machine, after which they get SIGTERM themselves,
/// and `grace` later KILL: rank 0 may write a checkpoint. SIGUSR1 is theirs. Returns this process's
/// exit code: 0, 1, 2 when the cause is a user's mistake, or 128 + the signal that ended this
/// process.
int supervise(const std::vector<WorkerCommand>& workers, const MachineInRun& self,
              CauseExchange& exchange, std::chrono::milliseconds grace = kTerminationGrace);

}  // namespace dtool::trainer
