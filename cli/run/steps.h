// SPDX-License-Identifier: MIT
// The steps of `dtool run`, in their order: it plans what runs on which machine (make_plan.cpp),
// makes the hosts ready (make_ready.cpp), and starts the run and follows it (start_run.cpp).
// run.cpp calls them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/copy/copy_to_hosts.h"
#include "cli/engines/engine.h"
#include "cli/host_options.h"
#include "cli/plan/flags.h"
#include "cli/plan/plan.h"
#include "cli/ready/check_hosts.h"
#include "cli/ready/packages.h"
#include "cli/record/record.h"
#include "cli/run/earlier_run.h"
#include "cli/run/run_report.h"
#include "killfiles/killfile.h"
#include "ssh/fanout/fleet.h"
#include "ssh/host.h"
#include "ssh/remote.h"

namespace dtool::cli {

/// The run that is about to start: what it was asked to be, and what is known of it so far. Made
/// from the flags; then the steps below fill it in.
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

// The hosts of a planned run are made ready: they are looked at, and given what they lack of the
// data, the Python environment, the trainer and the code.

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

// The start of a run whose plan is complete: first the killfile, then the sessions.

/// Whether `dtool run` stays until the run has ended: as --follow asks, or unasked, which it says.
enum class Follow { no, yes, unasked };

/// Writes the killfile, which names every session that may come to exist.
killfiles::Killfile write_killfile(const RunPlan& plan, const ssh::ConnectOptions& connect);

/// Starts the engine's jobs; if one does not start, ends the others again. Returns the exit code:
/// that of the whole run if it is followed.
int start_run(Console& console, ssh::Remote& remote, const Engine& engine, const RunPlan& plan,
              killfiles::Killfile killfile, const ssh::ConnectOptions& connect, Follow follow,
              const std::string& record, RunReport& report);

}  // namespace dtool::cli
