// SPDX-License-Identifier: MIT
// Starts the jobs of a run on their hosts. run and config use it.
#pragma once

#include <cstddef>
#include <vector>

#include "ssh/remote.h"
#include "ssh/screen_job.h"

namespace dtool::cli {

class Console;

/// When a job is started: a job that reaches out to other jobs comes after them.
enum class StartOrder { first, last };

/// A job, and the index of its host in the remote.
struct HostJob {
  std::size_t host = 0;
  ssh::ScreenJob job;
  StartOrder order = StartOrder::first;
};

/// Starts the jobs; the results say why a job did not start. If a job fails, the jobs whose turn is
/// last are not started and have no result.
std::vector<ssh::HostResult> start_jobs(Console& console, ssh::Remote& remote,
                                        const std::vector<HostJob>& jobs, ssh::OldLog old_log);

}  // namespace dtool::cli
