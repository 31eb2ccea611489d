// A job's state folder, `~/.dtool/runs/RUN/MACHINE`, as dtool-host reads it. screen_job.h says what
// is in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtool::host {

/// The leader of a job's session.
struct Leader {
  pid_t pid = 0;
  std::uint64_t start = 0;  ///< as in Process
};

struct JobFiles {
  std::optional<Leader> leader;  ///< nothing: it was not started in this boot of this host
  std::string holder;            ///< what holds its terminal: screen, tmux, none; or empty
};

JobFiles read_job_files(const std::string& folder);

/// `PID START BOOT` as the file `process` has it: its leader where that is of this boot.
std::optional<Leader> parse_leader(std::string_view line, std::string_view boot);

}  // namespace dtool::host
