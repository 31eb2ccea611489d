// SPDX-License-Identifier: MIT
// The words of a program as people mistype them: a script that is not here, a shell's line, dtool's
// own flags behind `--`. Looked at before any host is reached.
#pragma once

#include <string>
#include <vector>

#include "cli/plan/flags.h"
#include "cli/plan/plan.h"

namespace dtool::cli {

/// Throws UsageError if the words cannot be a program's: a quoted line, `VAR=1 python3 …`, `cd …`,
/// which only a shell runs, or a flag of dtool; and if dtool's --dry_run is among them.
void check_program_words(const RunPlan& plan);

/// `did you mean python3?` for a mistyped name of an interpreter or launcher, else empty.
std::string meant_program(const std::string& name);

/// Throws UsageError for a script whose lines end as on Windows.
void refuse_windows_lines(const std::string& name, const std::string& script);

/// Throws UsageError for a file that nobody may execute.
void require_executable(const std::string& file);

/// Throws UsageError if the program is a file of the current folder that hosts could not start: a
/// Python or shell script (.py or .sh) that is not there, is named without its folder, or is
/// excluded from sending, unless an environment may make it; or a file that nobody may execute or
/// that has the line ends of Windows.
void require_script(const RunPlan& plan, const std::vector<std::string>& excludes);

/// What is worth a note: dtool's flags and placeholders among the words, paths that this machine's
/// shell filled in, a program of MPI that dtool itself starts.
std::vector<std::string> notes_on_words(const RunPlan& plan, const RunFlags& flags);

/// A hint at what a failed run's cause says: NCCL in a run of one process, or a module of the code
/// folder that a script below it does not find. Empty: none.
std::string hint_at_cause(const std::string& cause, int processes,
                          const std::vector<std::string>& program);

}  // namespace dtool::cli
