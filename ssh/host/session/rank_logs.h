// SPDX-License-Identifier: MIT
// The output of the ranks of one machine, where it has several: a file for each rank, and a process
// that puts their whole lines into the machine's log. A program never waits for that process: it
// writes into its file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/host/files.h"
#include "ssh/host/session/merging.h"
#include "ssh/host/session/report.h"

namespace dtool::host {

class RankLogs {
 public:
  /// Opens the files of these ranks, if the machine has several `processes` of the run. If they
  /// cannot be made, all write into the machine's log as one alone does.
  RankLogs(std::string state, int attempt, std::vector<int> ranks, int processes);

  /// Whether the ranks have files of their own.
  bool are_open() const { return !files_.empty(); }
  /// For the standard output and error of the rank at that place.
  int file(std::size_t which) const { return files_[which].get(); }
  const std::string& path(std::size_t which) const { return paths_[which]; }

  /// Call it when the ranks were started: their processes, in order, none of them waited for yet.
  /// The merging process lives until they have ended, even if this one ends before. It takes no
  /// notice of TERM, because what they write at their end belongs into the log.
  void start(const std::vector<pid_t>& processes);
  /// Starts the merging process again if it was killed: the log then goes on where that one was.
  /// Call it after each SIGCHLD.
  void keep();
  /// For another child of this process: it is not to keep the channel to the merging process open,
  /// which closes when this process ends.
  void let_go();
  /// A rank has ended.
  void end(std::size_t which);
  /// Waits up to two seconds until the machine's log has all that the ranks have written.
  void settle();
  /// All ranks have ended: waits until all is in the log, up to five seconds.
  void finish();

 private:
  struct Process {
    pid_t pid;
    std::uint64_t start;
    bool has_ended;
  };

  void start_merging();
  void tell_lack() const;

  const std::string state_;
  const std::vector<int> ranks_;
  std::vector<Descriptor> files_;
  std::vector<std::string> paths_;
  std::vector<std::uint64_t> begins_;  ///< sizes of the files before
  std::vector<Process> processes_;
  std::optional<MergeProgress> progress_;
  Descriptor channel_;  ///< the channel to the merging process
  pid_t merging_ = -1;
  int starts_ = 0;
};

/// For the session, when the processes have ended: says in the log if lines of ranks may be in
/// their files alone, since the merging process was killed together with the one that would replace
/// it.
void tell_unmerged(const std::string& state, const std::string& log);

}  // namespace dtool::host
