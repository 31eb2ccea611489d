// SPDX-License-Identifier: MIT
// Messages between dtool and dtool-host (ssh/wire/protocol.h) about a log of a job, as it grows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ssh/wire/protocol.h"

namespace dtool::host {

/// Send a job's log. The reply is a LogBegin, then LogBytes (or SelectedLines, if ranks or a
/// pattern are named), RanksOfLog and LogBreaks, then a LogEnd.
struct LogRequest {
  static constexpr Kind kKind = Kind::log_request;
  std::string state_folder;
  std::string log;                     ///< path from the killfile
  std::optional<std::uint64_t> lines;  ///< begin that many lines before the end
  std::uint64_t offset = 0;            ///< else begin at this byte,
  Hidden before;             ///< if this text precedes it: recognises the file by its content
  bool is_followed = false;  ///< go on until the job has ended
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
  std::uint64_t offset = 0;  ///< of the first byte that follows
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
  std::uint64_t offset = 0;  ///< behind the last line that was looked at
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
