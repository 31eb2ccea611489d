// A job's state folder, `~/.dtool/runs/RUN/MACHINE`, as dtool-host reads it. screen_job.h says what
// is in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/host/members.h"
#include "ssh/host/process_table.h"

namespace dtool::host {

/// The leader of a job's session.
struct Leader {
  pid_t pid = 0;
  std::uint64_t start = 0;  ///< as in Process
  bool is_of_this_boot = false;
};

struct JobFiles {
  std::optional<Leader> leader;  ///< nothing: it was not started
  std::string holder;            ///< what holds its terminal: screen, tmux, none; or empty
};

JobFiles read_job_files(const std::string& folder);

/// `PID START BOOT` as the file `process` has it; `boot`: which boot this is.
std::optional<Leader> parse_leader(std::string_view line, std::string_view boot);

/// The leader's process; nothing if it is gone.
std::optional<Process> find_leader(const Leader& leader);

/// Adds the leader's session to what a run is known by, unless the pid was given out again, and the
/// session with it.
void add_leader(const Leader& leader, RunTraces& traces);

}  // namespace dtool::host
