// The machine's process: starts the workers, watches them, and when one fails ends the others and
// says which failed first.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/launch.h"

namespace dtool::trainer {

/// One worker process to start.
struct WorkerCommand {
  std::filesystem::path program;
  std::vector<std::string> arguments;    ///< argv, from argv[0]
  std::vector<std::string> environment;  ///< NAME=VALUE, set on top of this process's own
  int rank = 0;
};

/// The workers of this machine, one a local rank; `first` is the place of the first of them.
std::vector<WorkerCommand> plan_workers(const Place& first, const std::filesystem::path& program,
                                        const std::vector<std::string>& arguments,
                                        const Environment& environment, int threads);

/// Starts the workers and waits for all of them. They die with this process (PR_SET_PDEATHSIG).
/// When one fails, the others get TERM, `grace` later KILL, and one line on stderr names machine,
/// rank and cause. SIGTERM, SIGINT and SIGHUP end the workers too. Returns this process's exit
/// code: 0, 1, 2 when the first failure is a user's mistake, or 128 + the signal that ended this
/// process.
int supervise(const std::vector<WorkerCommand>& workers, int machine,
              std::chrono::milliseconds grace = std::chrono::seconds(5));

}  // namespace dtool::trainer
