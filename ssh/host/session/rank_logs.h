// SPDX-License-Identifier: MIT
// The output of the ranks of one machine, where it has several: a file for each rank, and a process
// that puts their whole lines into the machine's log. A program never waits for that process: it
// writes into its file.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/host/files.h"
#include "ssh/host/session/report.h"

namespace dtool::host {

// The process that puts the whole lines of a machine's ranks into its log (rank_logs.h starts it).
// What it has done is in memory that outlives it, so that another one goes on where it was killed.

constexpr int kSettle = -1;  // a message; the others are places of ranks that have ended

/// How far the log is, in memory that a process shares with its children.
class MergeProgress {
 public:
  /// Throws std::bad_alloc.
  explicit MergeProgress(const std::vector<std::uint64_t>& begins);
  ~MergeProgress();
  MergeProgress(const MergeProgress&) = delete;
  MergeProgress& operator=(const MergeProgress&) = delete;

  /// A piece of text that a write into the log may have brought there, or a part of it.
  struct Write {
    std::size_t rank = 0;        ///< its place
    std::uint64_t offset = 0;    ///< the rank's offset before the write
    std::uint64_t log_size = 0;  ///< the log's size before the write
    std::uint64_t size = 0;      ///< 0: there is none
  };

  /// Where the rank's first line begins that is not in the log as a whole.
  std::uint64_t offset(std::size_t rank) const { return word(kOffsets + rank); }
  /// The write that was under way; of size 0 if none was.
  Write open_write() const;
  void begin(const Write& write);
  /// The text is in the log.
  void end(std::size_t rank, std::uint64_t offset);
  bool is_complete() const { return word(kComplete) != 0; }
  void complete() { word(kComplete) = 1; }

 private:
  enum Word : std::size_t { kComplete, kRank, kOffset, kLogSize, kSize, kOffsets };
  std::atomic<std::uint64_t>& word(std::size_t which) const { return words_[which]; }

  std::span<std::atomic<std::uint64_t>> words_;
};

struct MergedRank {
  Descriptor file;
  pid_t pid = 0;
  std::uint64_t start = 0;      ///< the start time of the process
  bool has_ended = false;       ///< the process has ended
  std::uint64_t offset = 0;     ///< up to here it was read
  bool is_complete = false;     ///< all of it is in the text
  std::uint64_t to_settle = 0;  ///< offset that is waited for
};

/// How long the merging process waits for more after it has read so much: the less comes the
/// longer. `last`: how long it waited before. Pure.
Time pause_after(std::size_t size, Time last);

/// Puts the ranks' lines into the log until all have ended. `ranks`: their numbers. `channel`: of
/// the process that started this one.
void merge_lines(std::vector<MergedRank> sources, const std::vector<int>& ranks, Descriptor log,
                 Descriptor channel, MergeProgress& progress);

// Makes one text of what several ranks write: whole lines, each behind the mark of its rank
// (ssh/host/rank_log.h).

class LineMerger {
 public:
  /// A line beyond it becomes several lines.
  static constexpr std::size_t kLongestLine = 256U << 10U;

  explicit LineMerger(const std::vector<int>& ranks);

  /// Takes bytes of the rank at that place of `ranks`. Of a line that its program redraws with
  /// carriage returns only states are kept: one every five seconds, and the last.
  void add(std::size_t which, std::string_view bytes, Time now);
  /// The rank has ended: a line without an end is complete.
  void end(std::size_t which);
  /// How many of its bytes are of a line that is not complete.
  std::uint64_t held(std::size_t which) const { return ranks_[which].held; }
  /// The text that is complete. The caller takes it.
  std::string& text() { return text_; }

 private:
  struct Rank {
    std::string mark;
    std::string open;     ///< line without its end, from its last carriage return on
    std::string redrawn;  ///< its state before that
    Time shown{};         ///< the time when such a state was last shown
    std::uint64_t held = 0;
  };

  void add_part(Rank& rank, std::string_view part, Time now);
  void show_state(Rank& rank, Time now);
  void end_line(Rank& rank);

  std::vector<Rank> ranks_;
  std::string text_;
};

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
