// SPDX-License-Identifier: MIT
// The code of the run that `dtool rerun` repeats, as it was sent. Its files come from the folder
// that they were sent from, where that still has them, and from the run's own trees on its hosts.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/action.h"
#include "cli/console.h"
#include "cli/plan/flags.h"
#include "cli/record/record.h"
#include "cli/run/earlier_outputs.h"
#include "ssh/fanout/fleet.h"
#include "ssh/remote.h"
#include "sync/listing.h"
#include "sync/restored_tree.h"
#include "sync/tree.h"

namespace dtool::cli {

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
