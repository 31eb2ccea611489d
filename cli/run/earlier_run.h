// SPDX-License-Identifier: MIT
// Which earlier run a run goes on from or repeats, and what it takes over from its record: one that
// goes on from it (`dtool run --resume RUN`) or repeats it (`dtool rerun RUN`, earlier_code.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/options.h"
#include "cli/plan/flags.h"
#include "cli/plan/plan.h"
#include "cli/record/record.h"
#include "cli/settings.h"
#include "cli/watch/machine_status.h"
#include "ssh/connect_options.h"
#include "ssh/host.h"
#include "ssh/host/files.h"

namespace dtool::cli {

/// The flags that a later run takes over: without those that are about one command only, those that
/// the record has in another form, and exports with a value.
GivenFlags flags_to_record(GivenFlags given);

class EarlierRun {
 public:
  /// `id`: its id or the beginning of one. Throws UsageError if there is no such run, if it has no
  /// record here that tells its flags, or if it cannot be taken up in this way.
  EarlierRun(const std::string& id, Start start);
  EarlierRun(RunRecord record, Start start);

  const RunRecord& record() const { return record_; }
  Start start() const { return start_; }
  /// For a run that goes on: all earlier runs, oldest first.
  std::vector<std::string> chain() const;

  /// Gives the command the earlier run's flags, hosts, seed and output folder, except what the user
  /// gave. Throws UsageError on a flag that must stay as it was.
  void give_flags(Options& command);

  /// Where the hosts are the earlier run's, each has as many processes as then, if no flag says
  /// otherwise.
  void keep_processes(Targets& targets) const;

  /// The folder of the code on `host`, if the earlier run tells it.
  std::optional<std::string> code_folder_on(const ssh::Host& host) const;

  /// For a run that goes on: whether the current folder is sent as then. Throws UsageError if
  /// another one was.
  bool sends_code() const;

  /// The flags to record for a run that repeats this one, after `given`: also those about sending,
  /// and with the paths of files that the user gave as absolute ones, since paths are from the
  /// folder of the code.
  GivenFlags flags_of_rerun(GivenFlags given) const;

  /// A file that the earlier run's flags name, now that the current folder may be another one: in
  /// `code` (its files that were sent; may be empty), else in the folder of that time. Nothing if
  /// it is in neither, `file` itself if the user gave it now or if its path is absolute.
  std::optional<std::filesystem::path> find_file(const std::string& flag, const std::string& file,
                                                 const std::filesystem::path& code) const;

  /// Throws UsageError that names the variables whose values `plan` lacks: the earlier run exported
  /// them, and their values are not recorded.
  void require_variables(const RunPlan& plan) const;

 private:
  RunRecord record_;
  Start start_;
  GivenFlags typed_;  ///< the flags that the user typed
};

// `dtool run --resume RUN`: which earlier runs a run may go on from. earlier_run.h gives what it
// takes over, and earlier_outputs.h brings the outputs.

/// Why something of a run may still go on, or begin, on a machine that has answered; empty: it has
/// ended there. Pure.
std::string why_not_ended(const std::vector<MachineStatus>& machines);

/// Throws UsageError if a machine of the earlier run is not known to have ended; a machine other
/// than the first that does not answer is told in a note, and added to `silent`. False:
/// interrupted.
bool require_ended(Console& console, const std::string& run_id, const HostOptions& hosts,
                   const UserSettings& users, const std::shared_ptr<ssh::SilentHosts>& silent);

/// Throws UsageError that names the run which goes on from `run_id`, if one does.
void require_not_resumed(const std::string& run_id);

/// While it is held, no other dtool here begins to go on from any run: so two that are to go on
/// from one do not both find that none does. Throws UsageError if it is not free for seconds.
host::Descriptor lock_resuming();

}  // namespace dtool::cli
