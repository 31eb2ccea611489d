// SPDX-License-Identifier: MIT
// Messages between dtool and dtool-host (ssh/wire/protocol.h) about the jobs of a run: start,
// status and kill.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ssh/wire/protocol.h"

namespace dtool::host {

/// How a line of a run's log begins that says why the whole run failed, and the same without the
/// name of this program.
inline constexpr std::string_view kFailurePrefix = "dtool: the run failed: ";
inline constexpr std::string_view kRunFailed =
    kFailurePrefix.substr(std::string_view("dtool: ").size());

/// End all that belongs to a run here, and look again.
struct KillRequest {
  static constexpr Kind kKind = Kind::kill_request;
  std::string run_id;                      ///< empty: only the sessions, as in AllenAct's killfiles
  std::vector<std::string> sessions;       ///< names of screen sessions
  std::vector<std::string> state_folders;  ///< marked as killed first; `~/` is the home folder
  std::int64_t grace_ms = 5000;            ///< the time between TERM and KILL

  void fields(auto visit) { visit(run_id, sessions, state_folders, grace_ms); }
};

struct KillReply {
  static constexpr Kind kKind = Kind::kill_reply;
  std::int64_t ended = 0;         ///< processes that existed and have ended
  std::int64_t forced = 0;        ///< how many of them TERM did not end
  std::vector<std::string> left;  ///< `pid command` of processes that still run
  std::string cancelled;          ///< jobs of a scheduler that were ended: `job 12`
  std::string job_left;     ///< why a scheduler may still have jobs of the run; empty: it has none
  std::string vouched_for;  ///< why nothing can be left on other hosts either; or empty
  std::string host;         ///< its identity, as identify_host() writes it
  std::string no_folder;    ///< the run's folder, if it is missing; or empty
  std::string unmarked;     ///< a state folder that could not be marked; or empty
  std::string locked;       ///< a state folder into which a start still writes; or empty
  std::vector<std::string> unseen;  ///< processes that may be the run's, without proof

  void fields(auto visit) {
    visit(ended, forced, left, cancelled, job_left, vouched_for, host, no_folder, unmarked, locked,
          unseen);
  }
};

/// A file of a job's state folder.
struct File {
  std::string name;
  Hidden content;

  void fields(auto visit) { visit(name, content); }
};

/// Start a job, unless kill came first or it was started before. Paths may begin with `~/`.
struct StartRequest {
  static constexpr Kind kKind = Kind::start_request;
  /// The run's id, in the environment of every process of the job as DTOOL_RUN_ID.
  std::string run_id;
  std::string session;
  std::string state_folder;
  std::string log;
  bool has_fresh_log = false;  ///< an earlier log is deleted
  bool is_told = false;        ///< the script reports by a file that its program begins
  std::string expected_host;   ///< its identity, as identify_host() writes it; empty: any
  std::vector<File> files;     ///< `script` among them
  Hidden begin;  ///< bash that defines `begin`, a launcher's own way to start; without it, or
                 ///< if it does not answer `started`, a session is started

  void fields(auto visit) {
    visit(run_id, session, state_folder, log, has_fresh_log, is_told, expected_host, files, begin);
  }
};

struct StartReply {
  static constexpr Kind kKind = Kind::start_reply;
  std::string error;    ///< why it does not run; empty: it does
  std::string started;  ///< its leader, as in the file `process`, or the scheduler's answer
  std::string job;      ///< the scheduler's id; or empty

  void fields(auto visit) { visit(error, started, job); }
};

/// Asks how one machine of a recorded run is doing. Paths may begin with `~/`.
struct StatusQuestion {
  std::string run_id;
  std::string state_folder;
  std::string log;
  std::string output_folder;  ///< empty: there is none

  void fields(auto visit) { visit(run_id, state_folder, log, output_folder); }
};

struct StatusRequest {
  static constexpr Kind kKind = Kind::status_request;
  bool is_brief = false;  ///< only the state and the members; no processes, log or GPUs
  std::vector<StatusQuestion> machines;

  void fields(auto visit) { visit(is_brief, machines); }
};

/// The failure after which a run was started again.
struct FailedAttempt {
  std::int64_t attempt = 0;     ///< the attempt's number, counted from 0
  std::uint64_t log_bytes = 0;  ///< how long this machine's log was at the end of that attempt
  std::optional<std::int64_t> machine;  ///< the machine that the cause names; or unknown
  std::optional<std::int64_t> rank;     ///< the rank that the cause names; or unknown
  Hidden cause;

  void fields(auto visit) { visit(attempt, log_bytes, machine, rank, cause); }
};

/// How long ago a rank wrote something.
struct RankAge {
  std::int64_t rank = 0;
  std::int64_t s_ago = 0;

  void fields(auto visit) { visit(rank, s_ago); }
};

/// How one machine's part of a run is doing. Ages are in seconds by the host's clock.
struct StatusAnswer {
  bool lacks_run_folder = false;
  std::optional<std::int64_t> pid;   ///< the pid of the session's leader, where one was started
  std::optional<std::int64_t> up_s;  ///< the time since its start, where it runs
  std::string terminal;              ///< `PID` of its screen, tmux or none; empty: it has ended
  bool was_rebooted = false;         ///< the host was rebooted since its start
  bool is_killed = false;            ///< it was killed by dtool kill
  bool is_stopped = false;           ///< it was stopped by the run's supervision
  std::optional<std::int64_t> exit_code;
  std::optional<std::int64_t> ended_s_ago;
  std::int64_t attempt = 0;
  std::string supervision;
  Hidden cause;
  std::optional<std::int64_t> cause_machine;    ///< the machine that the cause names; or unknown
  std::optional<std::int64_t> cause_rank;       ///< the rank that the cause names; or unknown
  std::optional<std::int64_t> failed_rank;      ///< the rank of this machine that failed first
  std::optional<FailedAttempt> failed_attempt;  ///< the newest one that another one followed
  std::string node;                             ///< node that a scheduler chose; or empty
  std::string job;                              ///< a scheduler's id; or empty
  std::string scheduler;                        ///< its title; or empty
  std::string scheduler_state;  ///< one of the names that its probe gives; empty: no scheduler has
                                ///< the job
  std::string reason;           ///< the scheduler's reason
  std::int64_t processes = 0;
  std::optional<std::int64_t> cpu_percent;
  std::optional<std::int64_t> memory_bytes;  ///< resident; shared pages count in each process
  Hidden said;                               ///< the launched program's report about the whole run
  Hidden last_line;                          ///< the last line of the log
  std::vector<Hidden> lines;  ///< the last of the rank that failed, or of a failed machine
  Hidden metrics;             ///< newest line of training in metrics.jsonl
  Hidden validation;          ///< newest line of validation
  std::optional<std::int64_t> metrics_s_ago;
  std::string full_disk;  ///< mount point of the disk of its log or state, if the disk is full
  std::vector<std::string> gpus;             ///< `index, use, memory, total memory` each
  std::optional<std::int64_t> output_s_ago;  ///< the age of its log's last change, where it runs
  std::vector<RankAge> silent;               ///< ranks that wrote something, a minute ago or longer
  /// The packages of a machine that has ended: its python and the packages, a line each.
  Hidden packages;
  Hidden simulator;  ///< its environment.json, which the bundled trainer writes; or empty

  void fields(auto visit) {
    visit(lacks_run_folder, pid, up_s, terminal, was_rebooted, is_killed, is_stopped, exit_code,
          ended_s_ago, attempt, supervision, cause, cause_machine, cause_rank, failed_rank,
          failed_attempt, node, job, scheduler, scheduler_state, reason, processes, cpu_percent,
          memory_bytes, said, last_line, lines, metrics, validation, metrics_s_ago, full_disk, gpus,
          output_s_ago, silent, packages, simulator);
  }
};

struct StatusReply {
  static constexpr Kind kKind = Kind::status_reply;
  std::string host;                    ///< its identity, as identify_host() writes it
  std::vector<StatusAnswer> machines;  ///< the answers in the order of the questions

  void fields(auto visit) { visit(host, machines); }
};

// Messages between dtool and dtool-host (ssh/wire/protocol.h) about a log of a job, as it grows.

/// Send a job's log. The reply is a LogBegin, then LogBytes (or SelectedLines, if ranks or a
/// pattern are named), RanksOfLog and LogBreaks, then a LogEnd.
struct LogRequest {
  static constexpr Kind kKind = Kind::log_request;
  std::string state_folder;
  std::string log;                     ///< path from the killfile
  std::optional<std::uint64_t> lines;  ///< begin that many lines before the end
  std::uint64_t offset = 0;            ///< else begin at this byte,
  Hidden before;  ///< the text that must precede that byte: recognises the file by its content
  bool is_followed = false;             ///< go on until the job has ended
  std::optional<std::int64_t> since_s;  ///< only lines from so many seconds ago on
  std::vector<std::int64_t> ranks;      ///< only lines of these; empty: all lines
  std::optional<std::uint64_t> until;   ///< only what is before this byte
  Hidden pattern;  ///< only lines that match this POSIX extended regular expression; empty: all

  void fields(auto visit) {
    visit(state_folder, log, lines, offset, before, is_followed, since_s, ranks, until, pattern);
  }
};

struct LogBegin {
  static constexpr Kind kKind = Kind::log_begin;
  std::uint64_t offset = 0;  ///< the offset of the first byte that follows
  bool is_lost = false;      ///< the requested place no longer exists
  std::string host = {};     ///< its identity, as identify_host() writes it

  void fields(auto visit) { visit(offset, is_lost, host); }
};

struct LogBytes {
  static constexpr Kind kKind = Kind::log_bytes;
  Hidden bytes;

  void fields(auto visit) { visit(bytes); }
};

/// Whole lines that the request selects, and how far the log was looked through.
struct SelectedLines {
  static constexpr Kind kKind = Kind::selected_lines;
  Hidden lines;
  std::uint64_t offset = 0;  ///< the offset behind the last line that was looked at
  Hidden before;             ///< the bytes before that place, as in LogRequest

  void fields(auto visit) { visit(lines, offset, before); }
};

/// The ranks whose lines are in the log, and whether their lines have marks (`r3: `). Comes before
/// the first marked line, and again when there are more ranks.
struct RanksOfLog {
  static constexpr Kind kKind = Kind::ranks_of_log;
  std::vector<std::int64_t> ranks;
  bool are_marked = false;

  void fields(auto visit) { visit(ranks, are_marked); }
};

/// The following bytes are from another file, or from this one's beginning.
struct LogBreak {
  static constexpr Kind kKind = Kind::log_break;
  bool is_rotated = false;  ///< else it was truncated

  void fields(auto visit) { visit(is_rotated); }
};

struct LogEnd {
  static constexpr Kind kKind = Kind::log_end;
  /// State of a job that was followed: exited, stopped, killed, lost, unproven, or a scheduler's
  /// word. Else empty.
  std::string state;
  std::int64_t exit_code = 0;

  void fields(auto visit) { visit(state, exit_code); }
};

/// Sent once a second while there is nothing new, so that a lost connection is noticed.
struct StillHere {
  static constexpr Kind kKind = Kind::still_here;

  void fields(auto visit) { visit(); }
};

}  // namespace dtool::host
