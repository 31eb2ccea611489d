// SPDX-License-Identifier: MIT
// Plans a run: what runs on which machine, from the flags and the run that it goes on from or
// repeats. No host is reached.
#pragma once

#include <optional>
#include <string>

#include "cli/action.h"
#include "cli/engines/engine.h"
#include "cli/host_options.h"
#include "cli/plan/flags.h"
#include "cli/plan/plan.h"
#include "cli/ready/packages.h"
#include "cli/record/record.h"
#include "cli/run/earlier_code.h"
#include "cli/run/earlier_run.h"
#include "ssh/host.h"

namespace dtool::cli {

// The run that is about to start: what it was asked to be, and what is known of it so far. Made
// from the flags; then make_plan.h plans it, make_ready.h makes the hosts ready, start.h starts it.

struct PendingRun {
  Start start = Start::anew;
  RunFlags flags;
  const Engine* engine = nullptr;           ///< known after the flags
  std::optional<EarlierRun> earlier;        ///< the run that it goes on from or repeats
  bool keeps_code = false;                  ///< the earlier run's code is sent, as it was then
  std::optional<EarlierCode> earlier_code;  ///< the code that is sent then
  std::string requirements;  ///< the file of --environment; empty: not given, or not here yet
  RunPlan plan;
  bool experiment_is_shipped = false;
  RunRecord record;
  std::optional<std::string> listing;  ///< the list of the code's files, for the record

  bool resumes() const { return earlier && earlier->start() == Start::resumed; }
  bool repeats() const { return earlier && earlier->start() == Start::rerun; }

  /// The bundled trainer with an experiment that came with dtool needs nothing of the current
  /// folder.
  bool needs_code() const { return !plan.program.empty() || !experiment_is_shipped; }
  bool wants_sync() const { return !flags.no_sync && needs_code(); }
  bool sends_to_code_folder() const { return wants_sync() && !keeps_code; }
  std::string code_folder_on(const ssh::Host& host) const;
  /// What --environment and the flags beside it want.
  PackageNeeds package_needs() const;
};

/// The earlier run that the flags name, if any, gives what the user has not. `command` has the
/// flags. Throws UsageError if it cannot be taken up.
void take_up_earlier(PendingRun& run, Options& command, const Invocation& invocation);

/// Files of this machine that the flags name. Those of the run to repeat are looked for where they
/// were then; the requirements may be in its code, which comes here later. Throws UsageError.
void find_files(PendingRun& run);

/// For a run that goes on: its code is the earlier run's, as it was sent, if the current folder has
/// other code now; a note says so. Throws as read_code_tree().
void keep_earlier_code(PendingRun& run, Console& console);

/// The code of the earlier run comes here. False: interrupted. Throws UsageError.
bool gather_code(PendingRun& run, Console& console, const ssh::ConnectOptions& connect);

/// Makes `run.plan`. Throws UsageError for flags, files and experiments with mistakes.
void make_plan(PendingRun& run, const Invocation& invocation, const Targets& targets);

/// A program that is not there is known at once if it is to run on this machine alone, as it is:
/// throws UsageError.
void require_program(const PendingRun& run, const Targets& targets);

}  // namespace dtool::cli
