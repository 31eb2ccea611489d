// SPDX-License-Identifier: MIT
// A job whose log is followed: whether it still runs, and how it ended.
#pragma once

#include <memory>
#include <string>

#include "ssh/host/child.h"
#include "ssh/host/job_files.h"
#include "ssh/wire/log.h"

namespace dtool::host {

class FollowedJob {
 public:
  /// `state`: its state folder. If a scheduler runs the job, another process asks it until
  /// the job has ended (ssh/host/session/scheduled_job.h).
  explicit FollowedJob(std::string state);

  bool runs();
  /// Call it after runs() was false: waits up to a second for the record of the end.
  LogEnd wait_for_end();

 private:
  /// Whether this is another host than the one where the job was started. Then missing files prove
  /// nothing.
  bool is_elsewhere() const;
  /// The end of a job that left no exit code.
  std::string became();

  std::string state_;
  std::optional<Leader> leader_;
  std::unique_ptr<Child> probe_;
};

}  // namespace dtool::host
