// SPDX-License-Identifier: MIT
// `dtool-host cause`: why an attempt of a scheduler's job failed, by what its processes have left
// in the run's folder. The job's script calls it when the attempt is over.
#pragma once

#include <string>
#include <vector>

namespace dtool::host {

/// `words`: the run's folder, the attempt, the place of the job's first machine, and how many
/// machines it has. Prints the cause in one line, or nothing if no process failed by itself, and
/// writes where it lies into the state folder of each machine (ssh/host/cause_place.h). Returns 0
/// if another attempt may end better, and 3 after a mistake of the user.
int tell_job_cause(const std::vector<std::string>& words);

}  // namespace dtool::host
