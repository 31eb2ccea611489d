// SPDX-License-Identifier: MIT
// Makes the hosts of a planned run ready: looks at them, and gives them what they lack of the data,
// the Python environment, the trainer and the code.
#pragma once

#include <vector>

#include "cli/console.h"
#include "cli/copy/copy_to_hosts.h"
#include "cli/host_options.h"
#include "cli/plan/plan.h"
#include "cli/ready/check_hosts.h"
#include "cli/record/record.h"
#include "cli/run/make_plan.h"
#include "cli/run/run_report.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// Asks the trainer of this machine, if there is one, about the experiment. Throws UsageError with
/// what it says against it.
void require_experiment(const PendingRun& run, Console& console);

/// Completes `run.plan` with what the hosts told, and `run.record`. False: a step went wrong and
/// was reported, and the run's folders on the hosts are for the caller to discard. Throws
/// UsageError about the experiment, and std::exception if this machine's disk is full, for one;
/// then they are discarded.
bool make_ready(PendingRun& run, RunReport& report, Console& console, ssh::Remote& remote,
                const Targets& targets, std::vector<RunData>& data);

// What a run's record takes from its plan and from the check of the hosts.

/// Fills in variables, environment, version and machines. `checked`: the hosts' answers; a machine
/// whose host was not asked has no hardware.
void record_plan(const RunPlan& plan, const std::vector<Checked>& checked, RunRecord& record);

}  // namespace dtool::cli
