// Runs that a session on each machine watches (cli/run/host/supervised_session.h): what the
// launchers that start such sessions share.
#pragma once

#include <vector>

#include "cli/run/check.h"
#include "cli/run/plan.h"
#include "ssh/job/screen_job.h"

namespace dtool::cli {

/// Where machine 0 will hear the others, if there are others and their failures concern anybody.
void place_coordinator(const std::vector<Checked>& checked, RunPlan& plan);

/// The job of the machine: what environment.sh is told, then `parts`, scripts one after another;
/// with the experiment and, unless failures are left alone, the supervision.
ssh::ScreenJob make_supervised_job(const RunPlan& plan, const MachinePlan& machine,
                                   const std::vector<std::string_view>& parts);

}  // namespace dtool::cli
