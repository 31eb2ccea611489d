// SPDX-License-Identifier: MIT
// Plans a run: what runs on which machine, from the flags and the run that it goes on from or
// repeats. No host is reached.
#pragma once

#include "cli/action.h"
#include "cli/host_options.h"
#include "cli/run/pending_run.h"

namespace dtool::cli {

/// Makes `run.plan`. Throws UsageError for flags, files and experiments with mistakes.
void make_plan(PendingRun& run, const Invocation& invocation, const Targets& targets);

/// A program that is not there is known at once if it is to run on this machine alone, as it is:
/// throws UsageError.
void require_program(const PendingRun& run, const Targets& targets);

}  // namespace dtool::cli
