// SPDX-License-Identifier: MIT
// The outputs of the run that `dtool run --resume` goes on from: looks whether they are there, and
// brings them to the machines that have other hosts or folders.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/plan/plan.h"
#include "cli/record/record.h"
#include "cli/run/run_report.h"
#include "ssh/fanout/fleet.h"
#include "ssh/remote.h"

namespace dtool::cli {

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

}  // namespace dtool::cli
