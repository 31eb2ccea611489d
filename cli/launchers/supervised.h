// SPDX-License-Identifier: MIT
// Parts shared by the launchers whose runs a session on each machine watches
// (ssh/host/session/supervised_session.h).
#pragma once

#include <vector>

#include "cli/plan/plan.h"
#include "cli/ready/check.h"
#include "ssh/screen_job.h"

namespace dtool::cli {

/// Whether machine 0 listens for the others: there are others, and their failures matter.
bool has_coordinator(const RunPlan& plan);

/// Sets where it listens.
void place_coordinator(const std::vector<Checked>& checked, RunPlan& plan);

/// A machine's job: the variables for environment.sh, then the scripts `parts` in order; with the
/// experiment and, unless failures are left alone, the supervision.
ssh::ScreenJob make_supervised_job(const RunPlan& plan, const MachinePlan& machine,
                                   const std::vector<std::string_view>& parts);

}  // namespace dtool::cli
