// SPDX-License-Identifier: MIT
// The table of `dtool list`: a row for each recorded run, fitted to the terminal.
#pragma once

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/record/record.h"
#include "cli/watch/machine_status.h"
#include "killfiles/killfile.h"

namespace dtool::cli {

/// The hosts of a run, `gpu[01-08]`.
std::string folded_hosts(const killfiles::Killfile& killfile);

/// A run, and what this launcher knows of it.
struct ListedRun {
  killfiles::Killfile killfile;
  std::optional<RunRecord> record =
      {};  ///< nothing: an older dtool started it, or it is unreadable
  /// The machines' states, with --state; empty: they could not be asked.
  std::optional<std::vector<MachineStatus>> states = {};
};

/// What ran: a program's words, or an experiment's name.
std::string what_ran(const ListedRun& run);

/// How it ended, as far as that is known here: `ended`, `killed`, `1 of 2 failed, 1 stopped`; or
/// empty.
std::string known_end(const ListedRun& run);

/// One or two numbers of the last line that tells metrics: `validation_accuracy 0.98`; or empty.
std::string last_metric(const ListedRun& run);

/// Whether each of the words is in what is known of the run: its id, program, hosts, end, code
/// folder and branch, in any case; `NAME=VALUE` also finds the flag `--NAME VALUE` and the setting
/// `….NAME = VALUE`.
bool matches(const ListedRun& run, const std::vector<std::string>& words);

enum class Clock { local, utc };

/// The titles, then a row for each run. `columns`: of the terminal; 0: no limit. Where they are too
/// few, the least of a run goes first, and the last column is cut; the id, the age and the state
/// stay.
std::vector<std::string> list_table(const Console& console, const std::vector<ListedRun>& runs,
                                    Clock clock, std::time_t now, std::size_t columns);

}  // namespace dtool::cli
