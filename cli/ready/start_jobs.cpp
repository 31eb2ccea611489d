// SPDX-License-Identifier: MIT
#include "cli/ready/start_jobs.h"

#include <algorithm>
#include <chrono>

#include "cli/host_output.h"

namespace dtool::cli {

std::vector<ssh::HostResult> start_jobs(Console& console, ssh::Remote& remote,
                                        const std::vector<HostJob>& jobs, ssh::OldLog old_log) {
  std::vector<ssh::HostResult> results;
  AnswerCount progress(console, remote.hosts(), "started");
  for (const StartOrder order : {StartOrder::first, StartOrder::last}) {
    std::vector<ssh::Task> tasks;
    for (const HostJob& each : jobs) {
      if (each.order == order) tasks.push_back({each.host, ssh::start_command(each.job, old_log)});
    }
    if (tasks.empty()) continue;
    ssh::RunOptions options;
    options.timeout = std::chrono::seconds(60);
    for (ssh::HostResult& result : remote.run(std::move(tasks), progress, options)) {
      ssh::reply_to_start(result);
      results.push_back(std::move(result));
    }
    if (!std::ranges::all_of(results, &ssh::HostResult::ok)) break;
  }
  return results;
}

}  // namespace dtool::cli
