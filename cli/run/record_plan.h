// SPDX-License-Identifier: MIT
// What a run's record takes from its plan and from the check of the hosts.
#pragma once

#include <vector>

#include "cli/plan/plan.h"
#include "cli/ready/check.h"
#include "cli/record/record.h"

namespace dtool::cli {

/// Fills in all but the code, the time and the command line. `checked`: the hosts' answers; a
/// machine whose host was not asked has no hardware.
void record_plan(const RunPlan& plan, const std::vector<Checked>& checked, RunRecord& record);

}  // namespace dtool::cli
