// SPDX-License-Identifier: MIT
// Finds out why a run failed, or an attempt of it, from the states of its machines: for
// `dtool status` and `dtool logs`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/watch/machine_status.h"

namespace dtool::cli {

/// Why a run failed.
struct RunCause {
  std::string text;                ///< one line that names the machine
  std::vector<std::string> lines;  ///< the last of that rank, or of that machine's log
  int machine = 0;                 ///< its id
  std::optional<int> rank = {};    ///< the rank that failed first, if it is known
  std::string where = {};          ///< `rank 3 on machine 1 (h2)`: whose lines they are
};

/// The cause that the run's supervision found, else the trainer's own message, else the machine
/// that failed first. Nothing if all is well.
std::optional<RunCause> cause_of(const std::vector<MachineStatus>& machines);

/// The newest failure after which the run was started again; `log_bytes` is of the machine that it
/// names.
std::optional<EarlierFailure> earlier_failure_of(const std::vector<MachineStatus>& machines);

}  // namespace dtool::cli
