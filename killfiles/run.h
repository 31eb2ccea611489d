// SPDX-License-Identifier: MIT
// What a run is, once: a struct and the table of its fields. A plan, a record and a killfile are
// each a run with more. From the table come killfile, record, `--json`, what `show`, `diff` and
// `--dry_run` tell, the variables of the scripts, and what a run that repeats another one takes
// over from it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ssh/wire/message.h"

namespace dtool::killfiles {

/// Whether a field is in killfiles. An older dtool refuses a killfile with a key that it does not
/// know, so no field that comes later goes there.
enum class Kept {
  no,      ///< such a field is empty by default
  yes,     ///< a file without it was edited or cut short
  newer,   ///< always written; a file of an older dtool may lack it
  if_set,  ///< written where it is not empty
};

/// What the forms of a run need to know of a field.
struct Row {
  const char* name;         ///< in records and in --json
  const char* shown = "";   ///< its name in show, diff and --dry_run; empty: these tell it by hand
  bool is_compared = true;  ///< by diff, if it is shown; a free port tells nothing
  Kept in_killfile = Kept::no;
  const char* key = "";         ///< in the killfile, where it is not `name`
  bool is_for_scripts = false;  ///< a variable of this name is defined for a machine's scripts
  const char* flag = "";  ///< the flag that gives an earlier run's value to a run that repeats it
  bool goes_on = true;    ///< and to one that goes on from it, where else today's settings count
  int least = 0;          ///< the range of a whole number
  int most = std::numeric_limits<int>::max();
};

/// The longest time in seconds for --lost_after and run.lost_after.
inline constexpr int kLongestSilence = 24 * 3600;

/// A field of a run with its row.
template <typename Value>
struct Cell {
  Row row;
  Value& value;
};

template <typename Value>
Cell<Value> cell(const Row& row, Value& value) {
  return {row, value};
}

/// Times are UTC, as `2026-11-21T03:45:12Z`. A record may lack fields, which are then as here.
struct Run {
  static constexpr const char* kStop = "stop";
  static constexpr const char* kLeave = "leave";

  std::string run_id;  ///< each process of the run has it as DTOOL_RUN_ID; see is_run_id
  std::string created;
  std::string launcher;                   ///< user@host that started it
  std::vector<std::string> command_line;  ///< dtool's own words, without the values of exports
  std::vector<std::string> chain;         ///< the runs that it goes on from, oldest first
  std::string rerun_of;                   ///< the run that it repeats; or empty
  std::string what;                       ///< name of the experiment or program
  std::string engine;                     ///< the value of --launcher
  std::string experiment;                 ///< TOML, after merging; empty: a program runs
  std::vector<std::string> program;       ///< its words; empty: the bundled trainer runs
  std::optional<std::uint64_t> seed;
  std::string listener;    ///< `IP:PORT` of rank 0; empty: none, or not known
  std::string output_dir;  ///< as given: relative to the code folder, absolute, or from `~/`
  std::string gpus;        ///< the list of --gpus; or empty
  std::string on_failure = kStop;  ///< `stop`: a machine's failure ends the others; or `leave`
  int max_restarts = 0;            ///< the most restarts of the whole run, after a failure
  /// The seconds without a sign of life after which a machine counts as failed.
  std::optional<int> lost_after;
  std::optional<int> nice;  ///< the niceness of its processes, 0 to 19

  bool operator==(const Run&) const = default;

  void fields(auto visit) {
    using enum Kept;
    visit(
        cell({.name = "run_id", .in_killfile = yes}, run_id),
        cell({.name = "created", .in_killfile = yes}, created),
        cell({.name = "launcher", .in_killfile = yes}, launcher),
        cell({.name = "command_line", .in_killfile = yes}, command_line),
        cell({.name = "chain", .shown = "resumes", .in_killfile = if_set}, chain),
        cell({.name = "rerun_of", .shown = "repeats", .in_killfile = if_set}, rerun_of),
        cell({.name = "what", .in_killfile = yes}, what),
        cell({.name = "engine",
              .shown = "engine",
              .in_killfile = newer,
              .key = "launched_by",
              .flag = "--launcher"},
             engine),
        cell({.name = "experiment"}, experiment),  //
        cell({.name = "program"}, program),
        cell({.name = "seed",
              .shown = "seed",
              .in_killfile = if_set,
              .is_for_scripts = true,
              .flag = "--seed"},
             seed),
        cell({.name = "distributed_ip_and_port",
              .shown = "listener",
              .is_compared = false,
              .in_killfile = yes},
             listener),
        cell({.name = "output_dir", .shown = "output_dir", .flag = "--output_dir"}, output_dir),
        cell({.name = "gpus", .shown = "gpus"}, gpus),
        cell({.name = "on_failure", .shown = "on_failure", .in_killfile = newer}, on_failure),
        cell({.name = "max_restarts",
              .shown = "max_restarts",
              .in_killfile = newer,
              .is_for_scripts = true},
             max_restarts),
        cell({.name = "lost_after",
              .shown = "lost_after",
              .is_for_scripts = true,
              .flag = "--lost_after",
              .goes_on = false,
              .least = 1,
              .most = kLongestSilence},
             lost_after),
        cell(
            {.name = "nice", .shown = "nice", .is_for_scripts = true, .flag = "--nice", .most = 19},
            nice));
  }
};

/// The silence after which a machine counts as failed, unless the run says another.
inline constexpr int kUsualLostAfter = 60;
inline constexpr const char* kUsualOutputDir = "experiment_output";

/// Calls `visit(row, value)` for each field.
template <typename Visit>
void visit_rows(Run& run, Visit visit) {
  run.fields([&visit](auto&&... each) {
    static_assert(host::has_fields<Run, sizeof...(each)>, "fields() leaves out a field");
    (visit(each.row, each.value), ...);
  });
}
template <typename Visit>
void visit_rows(const Run& run, Visit visit) {
  // fields() also serves those who write; here nothing is written.
  visit_rows(const_cast<Run&>(run),
             [&visit](const Row& row, const auto& value) { visit(row, value); });
}

/// The field's row with its value as text.
struct Told {
  Row row;
  std::string text;   ///< words are joined by blanks; empty: there is none
  std::string usual;  ///< the text of a run that says nothing about it
};

/// The row of the field of that name, which there is.
Row row_of(std::string_view name);

/// All fields, in the table's order.
std::vector<Told> tell(const Run& run);
/// Those that people are shown, where the value is not the usual one.
std::vector<Told> tell_unusual(const Run& run);

/// For a run that a file tells: calls `refuse` with the name of a field whose value no run has, and
/// with what is wrong with it.
void refuse_faults(const Run& run,
                   const std::function<void(const char* name, const std::string& fault)>& refuse);

/// Sets what a killfile means that lacks the key: processes over SSH that do not depend on each
/// other.
void assume_older(Run& run);

/// Whether it is a time of a run, or empty.
bool is_time(std::string_view text);

/// Whether `id` may name a run: letters, digits, `.`, `_`, `-`; the first a letter or digit; at
/// most 200. The id becomes a file name here and a folder name on every host.
bool is_run_id(std::string_view id);

// Kinds of characters, whatever the locale is.

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

inline bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace dtool::killfiles
