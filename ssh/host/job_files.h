// SPDX-License-Identifier: MIT
// A job's state folder, `~/.dtool/runs/RUN/MACHINE`, as dtool-host reads it. screen_job.h describes
// its files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ssh/host/members.h"
#include "ssh/host/process_table.h"

namespace dtool::host {

/// Whether a process was started since the host was booted. Containers and hardened hosts may hide
/// what tells it: then nothing proves a reboot.
enum class Boot { unknown, this_one, earlier };

/// The leader of a job's session.
struct Leader {
  pid_t pid = 0;
  std::uint64_t start = 0;  ///< as in Process
  Boot boot = Boot::unknown;
};

struct JobFiles {
  std::optional<Leader> leader;  ///< nothing: the job was not started
  std::string holder;            ///< program that holds its terminal: screen, tmux, none; or empty
};

JobFiles read_job_files(const std::string& folder);

/// Reads `PID START BOOT` from the file `process`. `boot` is the current boot, as current_boot()
/// names it.
std::optional<Leader> parse_leader(std::string_view line, std::string_view boot);

/// The leader's process; nothing if it has ended.
std::optional<Process> find_leader(const Leader& leader);

/// Adds the leader's session to the traces of a run, unless the kernel has reused the pid (and so
/// the session number).
void add_leader(const Leader& leader, RunTraces& traces);

}  // namespace dtool::host
