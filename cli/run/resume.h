// SPDX-License-Identifier: MIT
// `dtool run --resume RUN`: what a run that goes on from an earlier one takes from its record, and
// which earlier runs it may go on from. earlier_outputs.h brings the outputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/options.h"
#include "cli/record/record.h"
#include "cli/run/plan.h"
#include "cli/settings.h"
#include "ssh/host.h"
#include "ssh/host/files.h"

namespace dtool::cli {

/// The flags that a later run takes over: without those that are about one command only, those that
/// the record has in another form, and exports with a value.
GivenFlags flags_to_record(GivenFlags given);

/// The run to go on from.
class Resumption {
 public:
  /// `id`: its id or the beginning of one. Throws UsageError if there is no such run, if it has no
  /// record here that tells its flags, if its seeds are several, or if a later run goes on from it.
  explicit Resumption(const std::string& id);
  explicit Resumption(RunRecord record);

  const RunRecord& earlier() const { return earlier_; }
  /// All earlier runs, oldest first.
  std::vector<std::string> chain() const;

  /// Gives the command the earlier run's flags, hosts, seed and output folder, except what the user
  /// gave. Throws UsageError on a flag that must stay as it was.
  void give_flags(Options& command);

  /// Where the hosts are the earlier run's, each has as many processes as then, if no flag says
  /// otherwise.
  void keep_processes(Targets& targets) const;

  /// The folder of the code on `host`, if the earlier run tells it.
  std::optional<std::string> code_folder_on(const ssh::Host& host) const;

  /// Whether the current folder is sent as then. Throws UsageError if another one was.
  bool sends_code() const;

  /// Throws UsageError that names the variables whose values `plan` lacks: the earlier run exported
  /// them, and their values are not recorded.
  void require_variables(const RunPlan& plan) const;

  /// Throws UsageError if a machine of the earlier run is not known to have ended; a machine other
  /// than the first that does not answer is told in a note. False: interrupted.
  bool require_ended(Console& console, const HostOptions& hosts, const UserSettings& users) const;

 private:
  RunRecord earlier_;
  bool names_hosts_ = false;      ///< the user did
  bool names_processes_ = false;  ///< likewise, or GPUs, on which their number depends
  bool names_code_ = false;
};

/// Throws UsageError that names the run which goes on from `run_id`, if one does.
void require_not_resumed(const std::string& run_id);

/// While it is held, no other dtool here begins to go on from any run: so two that are to go on
/// from one do not both find that none does. Throws UsageError if it is not free for seconds.
host::Descriptor lock_resuming();

}  // namespace dtool::cli
