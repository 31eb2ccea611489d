// SPDX-License-Identifier: MIT
// Sends a job's log to dtool: whole, its last lines, or as it grows.
#pragma once

#include <memory>
#include <string>

#include "ssh/host/child.h"
#include "ssh/host/members.h"
#include "ssh/wire/run.h"

namespace dtool::host {

/// Writes the frames of the reply to `output`. Returns the job's exit code if the job was followed,
/// else 0. Throws std::runtime_error if there is no log, or if the reader is gone.
int send_log(const LogRequest& request, int output);

// A job whose log is followed: whether it still runs, and how it ended.

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
