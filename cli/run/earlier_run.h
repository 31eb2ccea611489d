// SPDX-License-Identifier: MIT
// Which earlier run a run goes on from (`dtool run --resume RUN`) or repeats (`dtool rerun RUN`),
// and what it takes over: from its record, its outputs (earlier_outputs.cpp) and its code
// (earlier_code.cpp).
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/host_options.h"
#include "cli/host_output.h"
#include "cli/options.h"
#include "cli/plan/flags.h"
#include "cli/plan/plan.h"
#include "cli/record/record.h"
#include "cli/run/run_report.h"
#include "cli/settings.h"
#include "cli/watch/machine_status.h"
#include "ssh/connect_options.h"
#include "ssh/fanout/fleet.h"
#include "ssh/host.h"
#include "ssh/host/files.h"
#include "ssh/remote.h"
#include "sync/listing.h"
#include "sync/restored_tree.h"
#include "sync/tree.h"

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

// `dtool run --resume RUN`: which earlier runs a run may go on from.

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

// The outputs of the run to go on from: whether they are there; and they are brought to the
// machines that have other hosts or folders.

/// What comes from one machine of the earlier run, by its place there.
struct EarlierPart {
  std::size_t from = 0;
  std::vector<std::size_t> to;  ///< places of the machines that lack it; empty: it is there already
};

/// Whose outputs a machine goes on with: those of the earlier machine of its place, and of the
/// first if there is none; or always of the first.
enum class OutputsOf { same_machine, first_machine };

/// The outputs that the machines of `plan` go on with. With the bundled trainer only the first
/// machine needs any. A scheduler's machines share one folder.
std::vector<EarlierPart> earlier_parts(const RunRecord& earlier, const RunPlan& plan,
                                       OutputsOf outputs_of = OutputsOf::same_machine);

class EarlierOutputs {
 public:
  /// `plan` has its machines. Both and `console` must outlive it.
  EarlierOutputs(Console& console, const RunRecord& earlier, const RunPlan& plan,
                 OutputsOf outputs_of, const ssh::ConnectOptions& connect);

  /// Whether all outputs are on their hosts, with a checkpoint for the trainer. What a program
  /// wrote in its own tree is then among them. The reasons are reported.
  bool are_there(RunReport& report);

  /// Brings them over this machine to the hosts of `remote`, where they replace files of the same
  /// names. They are put into their places only when all have come. What a program wrote in the
  /// earlier run's tree is then in the new run's, too. If `has_other_code`, files of the code stay
  /// as they were sent. The reasons of failures are reported. Throws std::exception if this machine
  /// cannot hold them.
  bool bring(ssh::Remote& remote, RunReport& report, bool has_other_code);

  bool interrupted() const { return remote_->interrupted(); }

 private:
  bool put_into_place(ssh::Remote& remote, RunReport& report);
  bool take_up_written(ssh::Remote& remote, RunReport& report, bool has_other_code) const;
  bool bring_over(const std::filesystem::path& folder, ssh::Remote& remote, RunReport& report);
  std::vector<ssh::Task> tasks_at_places(const ssh::Remote& remote, const char* text) const;

  Console& console_;
  const RunRecord& earlier_;
  const RunPlan& plan_;
  OutputsOf outputs_of_;
  std::vector<EarlierPart> parts_;
  std::unique_ptr<ssh::Remote> remote_;  ///< a host for each part
};

// A private folder of this machine, below `~/.dtool/brought`, for what a new run takes from the
// hosts of an earlier one on its way to other hosts.

/// How far that has come here.
class BringingProgress : public AnswerCount {
 public:
  using AnswerCount::AnswerCount;
  void on_interrupt(const std::vector<std::size_t>&) override {
    console_.note("interrupted: nothing is started");
  }
};

/// It goes with everything in it.
class BroughtFolder {
 public:
  /// Makes it, and deletes those that a killed dtool left days ago. Throws
  /// std::filesystem::filesystem_error.
  explicit BroughtFolder(const std::string& name);
  ~BroughtFolder();
  BroughtFolder(const BroughtFolder&) = delete;
  BroughtFolder& operator=(const BroughtFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The code of the run to repeat, as it was sent. Its files come from the folder that they were sent
// from, where that still has them, and from the run's own trees on its hosts.

/// The files of a tree whose content is not as a listing has it, and those that it lacks; sorted.
std::vector<std::string> changed_since(const tree_sync::Tree& tree,
                                       const tree_sync::Listing& before);

/// The first few names, and `…` if there are more.
std::string named_first(const std::vector<std::string>& names);

class EarlierCode {
 public:
  /// Reads the list of the code's files that was kept when it was sent. `earlier` and `console`
  /// must outlive it. Throws UsageError if there is none that fits the record.
  EarlierCode(Console& console, const RunRecord& earlier, Start start,
              const ssh::ConnectOptions& connect);

  /// Puts the code together in a private folder of this machine, which goes with this object: file
  /// by file, from the first place that has it as it was sent. False: interrupted. Throws
  /// UsageError that names the files which no place has, std::exception if this machine cannot hold
  /// them.
  bool gather();

  const tree_sync::Tree& tree() const { return *tree_; }

  /// Where a host keeps the tree beside the code folder, which may have newer code.
  std::string folder_on_hosts() const;

 private:
  bool look_here();
  bool look_on(std::size_t host);
  void note_lack(const std::string& place);
  UsageError fault() const;

  Console& console_;
  const RunRecord& earlier_;
  Start start_;
  std::string listing_;
  std::vector<std::string> trees_;  ///< the trees of the run, one for each of the Remote's hosts
  std::unique_ptr<ssh::Remote> remote_;
  std::optional<BroughtFolder> folder_;
  std::optional<tree_sync::RestoredTree> restored_;
  std::optional<tree_sync::Tree> tree_;
  std::vector<std::string> lacks_;  ///< the things that each place lacks, in words
};

}  // namespace dtool::cli
